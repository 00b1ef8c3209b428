#include <algorithm>

#include "fxjit/fx/convert.h"
#include "fxjit/fx/tracer.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

TracerBase::~TracerBase() = default;

namespace {

std::string where(const Proxy& p) {
  std::string text = concat(" (value '", p.node()->name(), "'");
  const NodeMeta* meta = p.node()->meta_if_any();
  const Argument* line = meta ? meta->find("source_line") : nullptr;
  if (line && line->is_str()) text += concat(" of ", line->as_str());
  return text + ")";
}

}  // namespace

// Each item goes through the virtual create_arg, so that an override sees every leaf; nothing is rebuilt where nothing
// changed, which is the common case.
Argument TracerBase::create_arg(const Argument& a) {
  if (!a.is_aggregate()) {
    if (!a.is_object() || a.as_object().is_constant()) return a;
    throw NotImplementedError("argument of type: " + a.type_name());
  }
  std::vector<Argument> items;
  const bool dict = a.is(ArgumentKind::Dict);
  const size_t n = a.size();
  for (size_t i = 0; i < n; ++i) {
    if (dict && a.entries()[i].key.contains_node()) {
      throw RuntimeError(concat("Keys for dictionaries used as an argument cannot contain a Node. Got key: ",
                                a.entries()[i].key.repr()));
    }
    const Argument& item = dict ? a.entries()[i].value : a.items()[i];
    Argument lowered = create_arg(item);
    if (items.empty() && lowered == item) continue;
    if (items.empty()) {
      items.reserve(n);
      for (size_t j = 0; j < i; ++j) items.push_back(dict ? a.entries()[j].value : a.items()[j]);
    }
    items.push_back(std::move(lowered));
  }
  return items.empty() ? a : Argument::rebuild(a, items);
}

Argument GraphAppendingTracer::create_arg(const Argument& a) {
  const Object* o = a.object_or_null();
  if (!o || (o->object_kind() != ObjectKind::Tensor && o->object_kind() != ObjectKind::Parameter)) {
    return TracerBase::create_arg(a);
  }
  Module* owner = graph().owning_module();
  if (!owner) return a;
  for (int64_t i = 0;; ++i) {
    const std::string name = concat("_tensor_constant", i);
    const ObjectRef there = owner->attribute(name);
    if (there && there->identity() != o->identity()) continue;
    if (!there) owner->set_attribute(name, ObjectRef(&a.as_object()), AttributeKind::Buffer);
    return create_node(Opcode::GetAttr, name, Argument::tuple({}), Argument::dict({}));
  }
}

Node* TracerBase::create_node(Opcode op, const Target& target, Argument args, Argument kwargs,
                              std::optional<std::string_view> name, Argument type) {
  return graph_->create_node(op, target, std::move(args), std::move(kwargs), name, std::move(type));
}

Proxy TracerBase::create_proxy(Opcode op, const Target& target, Argument args, Argument kwargs,
                               std::optional<std::string_view> name, Argument type) {
  Argument lowered_args = create_arg(args.is_none() ? Argument::tuple({}) : args);
  Argument lowered_kwargs = create_arg(kwargs.is_none() ? Argument::dict({}) : kwargs);
  Node* const node = create_node(op, target, std::move(lowered_args), std::move(lowered_kwargs), name, std::move(type));
  if (!node) throw TypeError(concat("create_node made no node for a ", to_string(op), " of ", target.to_string()));
  return proxy(node);
}

bool TracerBase::to_bool(const Proxy& p) {
  throw TraceError("symbolically traced variables cannot be used as inputs to control flow" + where(p));
}

std::vector<Proxy> TracerBase::iter(const Proxy& p) {
  throw TraceError(
      "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
      "**kwargs "
      "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of "
      "control "
      "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors" +
      where(p));
}

Proxy TracerBase::keys(const Proxy& p) { return p.method("keys"); }

bool TracerBase::is_leaf_function(const Callable&) { return true; }

Argument TracerBase::call_wrapped(const CallableRef& f, std::span<const Argument> args, const Argument& kwargs) {
  if (f->is_composite() && !is_leaf_function(*f)) return f->trace_body(*this, args, kwargs);
  return create_proxy(Opcode::CallFunction, f, Argument::tuple(args), kwargs);
}

TracerBase& detail::common_tracer(std::span<TracerBase* const> tracers, std::string_view function) {
  TracerBase* first = tracers.empty() ? nullptr : tracers[0];
  if (!first) throw TypeError(concat("a call of ", function, " was to be recorded without a Proxy in its arguments"));
  for (TracerBase* t : tracers) {
    if (t != first) {
      throw RuntimeError(concat("Found multiple different tracers while trying to trace operations ", function));
    }
  }
  return *first;
}

}  // namespace fxjit::inline v0::fx
