#include "passes/infer_types.h"

#include <unordered_map>

#include "ops/infer.h"
#include "passes/alias.h"
#include "passes/infer.h"

namespace fxjit::inline v0::passes {

Result<TensorTypePtr> infer(const fx::Node& n, ShapeEnv& env) {
  std::string_view schema = schema_of(n);
  if (is_inplace(schema)) {
    const fx::Node* self = n.args().size() > 0 ? n.arg(0).node_or_null() : nullptr;
    if (self && self->tensor_type()) return self->tensor_type();
    return Failure{std::string(schema) + " writes no tensor of known type"};
  }
  if (ops::has_type_rule(schema)) return ops::infer_type(env, n);
  std::optional<std::vector<TensorTypePtr>> types = infer_call(n, env);
  if (types && types->size() == 1) return (*types)[0];
  return Failure{"no rule for the type of " + std::string(schema)};
}

bool has_rule(std::string_view schema) { return ops::has_type_rule(schema) || has_call_rule(schema); }

namespace {

using fx::Node;

class Inference {
 public:
  explicit Inference(PassContext& context) : context_(context), env_(context.env) {}

  void visit(Node* n) {
    if (n->op() != fx::Opcode::CallFunction || is_call(*n, "_operator.getitem")) return;
    if (n->tensor_type()) {
      Result<TensorTypePtr> type = infer(*n, env_);
      if (!type || !accept(n, **type)) specialise(*n);
      return;
    }
    std::optional<std::vector<TensorTypePtr>> types = infer_call(*n, env_);
    bool known = types.has_value();
    for (Node* part : n->users()) {
      bool fits = known && is_call(*part, "_operator.getitem") && part->arg(1).is_int() &&
                  static_cast<size_t>(part->arg(1).as_int()) < types->size() && part->tensor_type();
      known = fits && accept(part, *(*types)[part->arg(1).as_int()]);
    }
    if (!known) specialise(*n);
  }

  bool changed() const { return changed_; }

 private:
  // What eager gave in the example call is right; a rule that says otherwise is not used.
  bool agrees(const TensorType& rule, const TensorType& seen) const {
    if (rule.dtype != seen.dtype || rule.device != seen.device || rule.rank() != seen.rank()) return false;
    for (size_t d = 0; d < seen.rank(); ++d)
      if (env_.hint(rule.sizes[d]) != env_.hint(seen.sizes[d]) ||
          env_.hint(rule.strides[d]) != env_.hint(seen.strides[d]))
        return false;
    return true;
  }

  bool accept(Node* n, const TensorType& rule) {
    const TensorType& seen = *n->tensor_type();
    if (!agrees(rule, seen)) {
      context_.notes.push_back(std::string(n->name()) +
                               ": its type is not the one that a rule gives, so its sizes are fixed");
      return false;
    }
    auto type = std::make_shared<TensorType>(rule);
    type->requires_grad = seen.requires_grad;  // grad mode decides it, which the rules do not know
    type->is_wrapped_number = seen.is_wrapped_number;
    if (*type == seen) return true;
    n->set_tensor_type(std::move(type));
    changed_ = true;
    return true;
  }

  void specialise(const Node& n) {
    for (const Node* input : n.all_input_nodes()) {
      if (!input->tensor_type()) continue;
      for (const auto* dims : {&input->tensor_type()->sizes, &input->tensor_type()->strides})
        for (Dim d : *dims) env_.guard_eq(d, env_.constant(env_.hint(d)));
    }
  }

  PassContext& context_;
  ShapeEnv& env_;
  bool changed_ = false;
};

// Rebuilds expressions with numbers in place of the symbols that are guarded to be these.
class Settler {
 public:
  explicit Settler(ShapeEnv& env) : env_(env) {
    for (const SymGuard& g : env.guards()) {
      if (g.rel != SymGuard::Eq) continue;
      note(g.lhs, g.rhs);
      note(g.rhs, g.lhs);
    }
  }

  bool empty() const { return known_.empty(); }

  Dim settle(Dim d) {
    if (auto it = known_.find(d.id); it != known_.end()) return it->second;
    const SymExpr e = env_.expr(d);
    Dim out = d;
    switch (e.kind) {
      case SymExpr::Const:
      case SymExpr::Symbol:
        break;
      case SymExpr::Add:
        out = env_.add(settle(e.a), settle(e.b));
        break;
      case SymExpr::Mul:
        out = env_.mul(settle(e.a), settle(e.b));
        break;
      case SymExpr::FloorDiv:
        out = env_.floordiv(settle(e.a), settle(e.b));
        break;
      case SymExpr::Mod:
        out = env_.mod(settle(e.a), settle(e.b));
        break;
      case SymExpr::Max:
        out = env_.max(settle(e.a), settle(e.b));
        break;
    }
    known_.emplace(d.id, out);
    return out;
  }

 private:
  void note(Dim symbol, Dim number) {
    if (env_.expr(symbol).kind == SymExpr::Symbol && env_.is_const(number)) known_.emplace(symbol.id, number);
  }

  ShapeEnv& env_;
  std::unordered_map<int32_t, Dim> known_;
};

}  // namespace

bool settle_sizes(PassContext& context) {
  Settler settler(context.env);
  if (settler.empty()) return false;
  bool changed = false;
  for (Node* n : context.graph->nodes()) {
    if (!n->tensor_type()) continue;
    auto type = std::make_shared<TensorType>(*n->tensor_type());
    for (auto* dims : {&type->sizes, &type->strides})
      for (Dim& d : *dims) d = settler.settle(d);
    if (*type == *n->tensor_type()) continue;
    n->set_tensor_type(std::move(type));
    changed = true;
  }
  return changed;
}

Result<bool> infer_types(PassContext& context) {
  Inference inference(context);
  for (Node* n : context.graph->nodes()) inference.visit(n);
  bool settled = settle_sizes(context);
  return inference.changed() || settled;
}

}  // namespace fxjit::inline v0::passes
