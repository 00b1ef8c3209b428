#include "fxjit/fx/transformer.h"

namespace fxjit::inline v0::fx {

Transformer::Transformer(GraphModule& module)
    : Interpreter(module), module_(module), graph_(Graph::create()), tracer_(*graph_) {}

Transformer::~Transformer() = default;

GraphModuleRef Transformer::transform() {
  // No argument is bound: placeholders are recorded beforehand, in their order.
  for (Node* n : graph().nodes()) {
    if (n->op() != Opcode::Placeholder) continue;
    const Value v = placeholder(n->target(), n->args().items(), n->kwargs());
    if (Node* made = v.node_or_null()) {
      made->set_type(n->type());
      if (n->meta_if_any()) made->meta().copy_from(*n->meta_if_any());
    }
    set_value(*n, v);
  }
  const Value result = run(std::span<const Value>());
  const Node* old = graph().output_node();
  if (old) {
    Node* output = graph_->output(result, old->type());
    if (old->meta_if_any()) output->meta().copy_from(*old->meta_if_any());
  }
  return GraphModule::create(ModuleRef(&module_), graph_, module_.class_name());
}

Value Transformer::run_node(const Node& n) {
  const size_t before = graph_->created();
  Value v = Interpreter::run_node(n);
  if (!n.meta_if_any()) return v;
  for (size_t id = before; id < graph_->created(); ++id) {
    Node* made = graph_->node_by_id(static_cast<uint32_t>(id));
    if (!made->erased() && !made->is_root() && (!made->meta_if_any() || made->meta().empty())) {
      made->meta().copy_from(*n.meta_if_any());
    }
  }
  return v;
}

Value Transformer::placeholder(const Argument& target, std::span<const Value> args, const Value&) {
  return graph_->placeholder(target.as_str(), args.empty() ? std::nullopt : std::optional<Argument>(args[0]));
}

Value Transformer::record(Opcode op, const Argument& target, std::span<const Value> args, const Value& kwargs) {
  return tracer_.create_proxy(op, target, Argument::tuple(args), kwargs);
}

Value Transformer::get_attr(const Argument& target, std::span<const Value> args, const Value& kwargs) {
  return record(Opcode::GetAttr, target, args, kwargs);
}
Value Transformer::call_function(const Argument& target, std::span<const Value> args, const Value& kwargs) {
  return record(Opcode::CallFunction, target, args, kwargs);
}
Value Transformer::call_method(const Argument& target, std::span<const Value> args, const Value& kwargs) {
  return record(Opcode::CallMethod, target, args, kwargs);
}
Value Transformer::call_module(const Argument& target, std::span<const Value> args, const Value& kwargs) {
  return record(Opcode::CallModule, target, args, kwargs);
}

}  // namespace fxjit::inline v0::fx
