#include "passes/fold.h"

#include <algorithm>

#include "kernel/lower/lower.h"
#include "ops/registry.h"
#include "ops/value.h"
#include "passes/alias.h"
#include "passes/typed_builder.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;
using kernel::ExprKind;

bool is_pointwise(const Node& n) {
  auto row = ops::find_schema(schema_of(n));
  return row && n.tensor_type() && (row->kind == ops::OpClass::Elementwise || row->kind == ops::OpClass::Special);
}

bool is_special(const Node& n, ops::SpecialRule rule) {
  auto row = ops::find_schema(schema_of(n));
  return row && row->kind == ops::OpClass::Special && row->special() == rule;
}

// An operand that can leave the other one as it is. Lowering costs as much as the whole of fuse does for the call, so
// calls that cannot fold are told apart before it.
bool is_neutral(const Argument& a) {
  return (a.is_int() || a.is_float()) && (a.to_double() == 0 || a.to_double() == 1);
}

// Operands that can make `n` fold: one number for all elements, or a cast that `n` undoes.
bool is_telling(const Node& operand, const Node& n) {
  if (!operand.tensor_type()) return false;
  return is_special(operand, ops::SpecialRule::fill) ||
         (is_special(operand, ops::SpecialRule::cast) && is_special(n, ops::SpecialRule::cast));
}

// What to look at for a call: alone where a literal can make it fold, then with the operands that can, in program
// order.
std::vector<std::vector<Node*>> groups_of(Node* n) {
  std::vector<std::vector<Node*>> groups;
  for (size_t i = 0; i < 2 && i < n->args().size() && groups.empty(); ++i)  // what follows are alpha, modes, types
    if (is_neutral(n->arg(i))) groups.push_back({n});
  std::vector<Node*> nodes;
  for (Node* operand : n->all_input_nodes())
    if (is_telling(*operand, *n)) nodes.push_back(operand);
  if (nodes.empty()) return groups;
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return *a < *b; });
  nodes.push_back(n);
  groups.push_back(std::move(nodes));
  return groups;
}

// The operand whose elements, each in its place, are those of the result.
Node* same_tensor(const kernel::Lowered& l, int32_t expr, const Node& n, ShapeEnv& env) {
  const kernel::Expr& load = l.kernel.exprs[static_cast<size_t>(expr)];
  if (load.kind != ExprKind::Load || l.buffers.size() != 2) return nullptr;
  Node* operand = l.buffers[static_cast<size_t>(load.index)].node;
  const TensorType &from = *operand->tensor_type(), &to = *n.tensor_type();
  const bool alike = from.dtype == to.dtype && from.device == to.device && from.sizes == to.sizes &&
                     from.strides == to.strides && from.is_wrapped_number == to.is_wrapped_number;
  // Equal types at an equal index: an operand that is broadcast or shifted has other sizes or an offset.
  const Dim offset = l.buffers[static_cast<size_t>(load.index)].offset;
  return alike && (offset.id < 0 || env.is_const(offset, 0)) ? operand : nullptr;
}

Argument number(DType t, uint64_t bits) {
  const ops::Value v{bits};
  if (is_floating(t)) return v.f();
  if (t == DType::Bool) return v.i() != 0;
  return v.i();
}

// full_like(a tensor of the result's type, number), or null where there is no such tensor.
Node* uniform(TypedBuilder& build, Node* n, uint64_t bits) {
  for (Node* like : n->all_input_nodes()) {
    if (!like->tensor_type() || like->tensor_type()->sizes != n->tensor_type()->sizes) continue;
    const DType t = n->tensor_type()->dtype;
    auto made = build.try_call("aten::full_like", {like, number(t, bits), t, {}, {}, {}, {}});
    if (!made) continue;
    if ((*made)->tensor_type()->strides == n->tensor_type()->strides) return *made;
    build.graph().erase_node(*made);
  }
  return nullptr;
}

// What can stand for the call, made before it; null where it must be computed.
Node* folded(PassContext& context, TypedBuilder& build, Node* n, bool reaches_caller) {
  for (const std::vector<Node*>& nodes : groups_of(n)) {
    auto lowered = kernel::lower_group(context.env, nodes, std::span(&n, 1));
    if (!lowered || lowered->kernel.stores.size() != 1) continue;
    const int32_t stored = lowered->kernel.stores[0].expr;
    const kernel::Expr& value = lowered->kernel.exprs[static_cast<size_t>(stored)];
    Node* made = nullptr;
    if (value.kind == ExprKind::Const)
      made = uniform(build, n, value.bits);
    else if (!reaches_caller)  // eager's result is a tensor of its own
      made = same_tensor(*lowered, stored, *n, context.env);
    if (made) return made;
  }
  return nullptr;
}

}  // namespace

Result<bool> fold(PassContext& context) {
  fx::Graph& graph = *context.graph;
  const std::vector<bool> reaches = reaches_caller(graph);
  TypedBuilder build(graph, context.env);
  bool changed = false;
  for (Node* n : graph.nodes()) {
    const bool pure = n->op() == fx::Opcode::CallFunction && is_pointwise(*n) && !n->is_impure();
    if (!pure || is_special(*n, ops::SpecialRule::fill)) continue;
    auto scope = graph.inserting_before(n);
    build.set_origin(n);
    Node* made = folded(context, build, n, reaches[n->id()]);
    if (!made) continue;
    n->replace_all_uses_with(made);
    graph.erase_node(n);
    changed = true;
  }
  return changed;
}

}  // namespace fxjit::inline v0::passes
