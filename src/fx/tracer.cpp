#include "fxjit/fx/tracer.h"

#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

// Where the tensors and modules of the tree are found: by identity, in constant time, so that many constants trace in
// linear time.
struct Tracer::Maps {
  std::unordered_map<const void*, Attribute> attributes;  // tensors; name is the path
  std::unordered_map<const void*, std::string> modules;   // path
  std::unordered_map<std::string, Node*> get_attr_cache;  // one node for each parameter read as an attribute
  std::unordered_map<std::string, int> calls;             // of a module, for the keys of the module stack
  std::unordered_map<std::string, int64_t> fresh;         // next suffix by prefix
};

Tracer::Tracer() = default;
Tracer::~Tracer() = default;

void Tracer::begin(const ModuleRef& root) {
  root_ = root;
  graph_ = Graph::create();
  set_graph(graph_.get());
  maps_ = std::make_unique<Maps>();
  module_stack_.clear();
  module_stack_cache_ = {};
  for (auto& [path, module] : named_modules(root_)) maps_->modules.emplace(module->identity(), path);
  for (Attribute& a : named_attributes(root_)) {
    const void* identity = a.value->identity();
    maps_->attributes.emplace(identity, std::move(a));
  }
}

GraphPtr Tracer::finish(const Argument& result) {
  create_node(Opcode::Output, "output", Argument::tuple({create_arg(result)}), Argument::dict({}));
  return graph_;
}

GraphPtr Tracer::trace(const ModuleRef& root) {
  const auto signature = root->signature();
  if (!signature) throw TypeError(concat("cannot trace ", root->class_name(), ": its forward has no known signature"));
  begin(root);
  std::vector<Argument> args;
  for (const Proxy& p : create_args_for_root(*signature)) args.push_back(p);
  return finish(root->forward(*this, args, Argument::dict({})));
}

GraphPtr Tracer::trace(const TraceFunction& function) {
  begin(make_ref<BasicModule>("torch.nn.modules.module.Module"));
  return finish(function.body(*this, create_args_for_root(function.signature)));
}

std::vector<Proxy> Tracer::create_args_for_root(const Signature& signature) {
  std::vector<Proxy> proxies;
  for (const Parameter& p : signature) {
    const std::string_view stars = p.kind == ParameterKind::VarPositional ? "*"
                                   : p.kind == ParameterKind::VarKeyword  ? "**"
                                                                          : "";
    Argument args = p.default_value ? Argument::tuple({*p.default_value}) : Argument::tuple({});
    proxies.push_back(create_proxy(Opcode::Placeholder, concat(stars, p.name), std::move(args), {}, {}, p.annotation));
  }
  return proxies;
}

// ---- Arguments

Argument Tracer::create_arg(const Argument& a) {
  if (a.is_object()) return arg_of_object(ObjectRef(&a.as_object()));
  if (a.is(ArgumentKind::NamedTuple)) {
    std::vector<Argument> fields;
    for (const Argument& field : a.items()) fields.push_back(create_arg(field));
    return create_node(Opcode::CallFunction, a.type_object(), Argument::tuple(fields), Argument::dict({}));
  }
  return TracerBase::create_arg(a);
}

Argument Tracer::arg_of_object(const ObjectRef& o) {
  const auto get_attr = [&](std::string_view path) {
    return create_node(Opcode::GetAttr, path, Argument::tuple({}), Argument::dict({}));
  };
  switch (o->object_kind()) {
    case ObjectKind::Parameter:
    case ObjectKind::Tensor: {
      const auto it = maps_->attributes.find(o->identity());
      if (it != maps_->attributes.end()) return get_attr(it->second.name);
      if (o->object_kind() == ObjectKind::Parameter) {
        throw NameError(concat("parameter is not a member of this module: ", Argument(o).to_string(), " is not in ",
                               root_->class_name()));
      }
      Attribute constant{get_fresh_qualname("_tensor_constant"), o, AttributeKind::Plain};
      root_->set_attribute(constant.name, o, AttributeKind::Plain);
      return get_attr(maps_->attributes.emplace(o->identity(), std::move(constant)).first->second.name);
    }
    case ObjectKind::Module: {
      const auto it = maps_->modules.find(o->identity());
      if (it != maps_->modules.end()) return get_attr(it->second);
      break;
    }
    case ObjectKind::Callable:
    case ObjectKind::Foreign:
      break;
  }
  return TracerBase::create_arg(o);
}

std::string Tracer::get_fresh_qualname(std::string_view prefix) {
  int64_t& next = maps_->fresh[std::string(prefix)];
  std::string name;
  do name = concat(prefix, next++);
  while (root_->attribute(name));
  return name;
}

Proxy Tracer::attribute(const ObjectRef& value) {
  if (value->object_kind() == ObjectKind::Module) throw TypeError("a module is called, not read as a value");
  const auto it = maps_->attributes.find(value->identity());
  if (it == maps_->attributes.end()) return proxy(create_arg(value).as_node());
  const auto cached = maps_->get_attr_cache.find(it->second.name);
  if (cached != maps_->get_attr_cache.end()) return proxy(cached->second);
  const Proxy p = create_proxy(Opcode::GetAttr, it->second.name, Argument::tuple({}));
  maps_->get_attr_cache.emplace(it->second.name, p.node());
  return p;
}

// ---- Modules

Node* Tracer::create_node(Opcode op, const Target& target, Argument args, Argument kwargs,
                          std::optional<std::string_view> name, Argument type) {
  Node* n = TracerBase::create_node(op, target, std::move(args), std::move(kwargs), name, std::move(type));
  if (record_module_stack && !module_stack_.empty()) n->meta().set("nn_module_stack", module_stack_meta());
  return n;
}

Argument Tracer::module_stack_meta() {
  if (module_stack_cache_.is_none()) {
    std::vector<DictEntry> entries;
    for (const ModuleScope& s : module_stack_) entries.push_back({s.key, Argument::tuple({s.path, s.class_name})});
    module_stack_cache_ = Argument::dict(entries);
  }
  return module_stack_cache_;
}

bool Tracer::is_leaf_module(const Module& m, std::string_view) { return m.is_standard(); }

std::string Tracer::path_of_module(const Module& m) {
  const auto it = maps_->modules.find(m.identity());
  if (it == maps_->modules.end()) throw NameError("module is not installed as a submodule: " + m.class_name());
  return it->second;
}

Argument Tracer::call_module(const ModuleRef& m, FunctionRef<Argument()> forward, std::span<const Argument> args,
                             const Argument& kwargs) {
  const std::string path = path_of_module(*m);
  const int calls = maps_->calls[path]++;
  struct Scope {
    Tracer& tracer;
    Scope(Tracer& t, ModuleScope s) : tracer(t) {
      tracer.module_stack_.push_back(std::move(s));
      tracer.module_stack_cache_ = {};
    }
    ~Scope() {
      tracer.module_stack_.pop_back();
      tracer.module_stack_cache_ = {};
    }
  } scope(*this, {calls ? concat(path, "@", calls) : path, path, m->class_name()});
  if (!is_leaf_module(*m, path)) return forward();
  return create_proxy(Opcode::CallModule, path, Argument::tuple(args), kwargs);
}

Argument Tracer::call_structured(const ModuleRef& m, std::span<const Argument> args, const Argument& kwargs) {
  return call_module(m, [&] { return m->forward(*this, args, kwargs); }, args, kwargs);
}

Proxy Tracer::call(const ModuleRef& m, std::initializer_list<Argument> args, Argument kwargs) {
  if (kwargs.is_none()) kwargs = Argument::dict({});
  const Argument result = call_structured(m, std::span(args.begin(), args.size()), kwargs);
  if (!result.is_node()) {
    throw TypeError(concat("module ", m->class_name(), " returns ", result.type_name(),
                           "; call_structured takes what is not one value"));
  }
  return proxy(result.as_node());
}

}  // namespace fxjit::inline v0::fx
