#include "fxjit/fx/interpreter.h"

#include <atomic>
#include <exception>

#include "fx/bind.h"
#include "fx/run_composite.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

OperatorResolver::~OperatorResolver() = default;
std::optional<Value> OperatorResolver::call_function(const Callable&, std::span<const Value>, const Value&) {
  return std::nullopt;
}

namespace {
std::atomic<OperatorResolver*> registered_resolver{nullptr};
}  // namespace

void register_operator_resolver(OperatorResolver* resolver) { registered_resolver.store(resolver); }

Interpreter::Interpreter(Module* module, const Graph& graph, OperatorResolver* resolver, bool free_values)
    : module_(module),
      graph_(graph),
      resolver_(resolver ? resolver : registered_resolver.load()),
      free_values_(free_values) {}

// The graph, not the snapshot: as in torch.fx the Interpreter runs what the graph is now.
Interpreter::Interpreter(GraphModule& module, OperatorResolver* resolver, bool free_values)
    : Interpreter(&module, module.graph(), resolver, free_values) {
  keep_ = module.graph_ptr();
}

Interpreter::~Interpreter() = default;

void Interpreter::set_value(const Node& n, Value v) {
  if (preset_.size() < graph_.created()) preset_.resize(graph_.created());
  preset_[n.id()] = std::move(v);
}

const Value* Interpreter::value(const Node& n) const {
  return n.id() < env_.size() && env_[n.id()] ? &*env_[n.id()] : nullptr;
}

void Interpreter::find_last_uses() {
  last_user_.assign(graph_.created(), 0);
  for (Node* n : graph_.nodes().reversed()) {
    for (Node* input : n->all_input_nodes()) {
      if (last_user_[input->id()] == 0) last_user_[input->id()] = n->id();
    }
  }
}

Value Interpreter::run(std::span<const Value> args, const Value& kwargs) {
  env_ = std::exchange(preset_, {});
  bound_.clear();
  const auto make_room = [this] {  // an override of run_node may have added nodes
    const size_t created = graph_.created();
    if (bound_.size() == created) return;
    env_.resize(created);
    bound_.resize(created);
    if (free_values_) last_user_.resize(created);
  };
  make_room();
  const auto open = [&](const Node* n) { return !env_[n->id()]; };
  for (auto& [n, v] : bind_arguments(graph_, args, kwargs, open)) bound_[n->id()] = std::move(v);
  if (free_values_) find_last_uses();
  for (Node* n : graph_.nodes()) {
    make_room();
    if (env_[n->id()]) continue;
    current_ = n;
    try {
      Value value = run_node(*n);
      make_room();
      env_[n->id()] = std::move(value);
    } catch (...) {
      const NodeMeta* meta = n->meta_if_any();
      const Argument* trace = meta ? meta->find("stack_trace") : nullptr;
      annotate_error(*n, concat("\n\nWhile executing ", n->format_node(), "\nOriginal traceback:\n",
                                trace && trace->is_str() ? trace->as_str() : std::string_view("None")));
    }
    bound_[n->id()].reset();
    if (n->op() == Opcode::Output) return *env_[n->id()];
    if (!free_values_) continue;
    for (Node* input : n->all_input_nodes()) {
      if (last_user_[input->id()] == n->id()) env_[input->id()].reset();
    }
  }
  return {};
}

void Interpreter::annotate_error(const Node&, const std::string& note) {
  try {
    throw;
  } catch (Error& e) {
    e.append(note);
    throw;
  } catch (const std::exception& e) {
    std::throw_with_nested(RuntimeError(e.what() + note));
  }
}

Value Interpreter::load(const Argument& a) {
  return map_arg(a, [&](Node* n) -> Argument {
    if (n->id() >= env_.size() || !env_[n->id()]) {
      throw RuntimeError(concat("Node ", current_->name(), " referenced nonexistent value ", n->name(),
                                "! Run Graph.lint() to diagnose such issues"));
    }
    return *env_[n->id()];
  });
}

Value Interpreter::run_node(const Node& n) {
  const Value args = load(n.args()), kwargs = load(n.kwargs());
  switch (n.op()) {
    case Opcode::Placeholder:
      return placeholder(n.target(), args.items(), kwargs);
    case Opcode::GetAttr:
      return get_attr(n.target(), args.items(), kwargs);
    case Opcode::CallFunction:
      return call_function(n.target(), args.items(), kwargs);
    case Opcode::CallMethod:
      return call_method(n.target(), args.items(), kwargs);
    case Opcode::CallModule:
      return call_module(n.target(), args.items(), kwargs);
    case Opcode::Output:
      return output(n.target(), args.items(), kwargs);
    case Opcode::Root:
      break;
  }
  FXJIT_UNREACHABLE("a root node was run");
}

Value Interpreter::placeholder(const Argument&, std::span<const Value>, const Value&) {
  return *std::exchange(bound_[current_->id()], std::nullopt);
}

Value Interpreter::get_attr(const Argument& target, std::span<const Value>, const Value&) {
  ObjectRef value = module_ ? find_attribute(*module_, target.as_str()) : nullptr;
  if (!value) throw RuntimeError(concat("Node referenced nonexistent target ", target.as_str()));
  return value;
}

Value Interpreter::call_function(const Argument& target, std::span<const Value> args, const Value& kwargs) {
  const auto* f = dynamic_cast<const Callable*>(target.object_or_null());
  if (!f) throw AssertionError("target should not be a string for call_function");
  if (resolver_) {
    if (auto v = resolver_->call_function(*f, args, kwargs)) return std::move(*v);
  }
  if (auto v = run_composite(*f, args, kwargs, resolver_)) return std::move(*v);
  return f->call(args, kwargs);
}

Value Interpreter::call_method(const Argument& target, std::span<const Value> args, const Value& kwargs) {
  if (args.empty()) throw TypeError(concat("method ", target.as_str(), " is called without the value it belongs to"));
  if (resolver_) {
    if (auto v = resolver_->call_method(target.as_str(), args, kwargs)) return std::move(*v);
  }
  throw AttributeError(concat("'", args[0].type_name(), "' object has no attribute '", target.as_str(), "'"));
}

Value Interpreter::call_module(const Argument& target, std::span<const Value> args, const Value& kwargs) {
  const ModuleRef module = module_ ? find_module(*module_, target.as_str()) : nullptr;
  if (!module) throw RuntimeError(concat("Node referenced nonexistent target ", target.as_str()));
  return module->call(args, kwargs);
}

Value Interpreter::output(const Argument&, std::span<const Value> args, const Value&) { return args[0]; }

}  // namespace fxjit::inline v0::fx
