#include "passes/canonicalize.h"

#include "passes/alias.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;

// An absent argument, or one that says what the tensor is already.
bool dtype_fits(const Argument& a, const TensorType& t) {
  return a.is_none() || (a.is(Argument::Kind::DType) && a.as_dtype() == t.dtype);
}

bool device_fits(const Argument& a, const TensorType& t) {
  if (a.is_none()) return true;
  return a.is(Argument::Kind::Device) && a.as_device().type == 0 && t.device == DeviceKind::CPU;
}

bool format_fits(const Argument& a, const TensorType& t, ShapeEnv& env) {
  if (a.is_none()) return true;
  if (!a.is(Argument::Kind::MemoryFormat)) return false;
  switch (a.as_memory_format()) {
    case fx::MemoryFormat::Preserve:
      return true;
    case fx::MemoryFormat::Contiguous:
      return is_contiguous(env, t);
    case fx::MemoryFormat::ChannelsLast:
    case fx::MemoryFormat::ChannelsLast3d:
      return false;
  }
  return false;
}

bool is_false(const Argument& a) { return a.is_none() || (a.is_bool() && !a.as_bool()); }

bool is_number(const Argument& a, double v) { return (a.is_float() || a.is_int()) && a.to_double() == v; }

// to.other(self, other, non_blocking, copy, memory_format) and type_as(self, other)
bool other_fits(const fx::Node& n, const TensorType& t) {
  const fx::Node* other = n.arg(1).node_or_null();
  return other && other->tensor_type() && other->tensor_type()->dtype == t.dtype &&
         other->tensor_type()->device == t.device;
}

}  // namespace

bool returns_operand(const fx::Node& n, const TensorType& t, ShapeEnv& env) {
  std::string_view schema = schema_of(n);
  if (schema == "aten::to.dtype") return dtype_fits(n.arg(1), t) && is_false(n.arg(3)) && format_fits(n.arg(4), t, env);
  if (schema == "aten::to.device")
    return device_fits(n.arg(1), t) && dtype_fits(n.arg(2), t) && is_false(n.arg(4)) && format_fits(n.arg(5), t, env);
  if (schema == "aten::to.dtype_layout") {
    bool strided = n.arg(2).is_none() || n.arg(2) == Argument(fx::Layout::Strided);
    return strided && dtype_fits(n.arg(1), t) && device_fits(n.arg(3), t) && is_false(n.arg(4)) && is_false(n.arg(6)) &&
           format_fits(n.arg(7), t, env);
  }
  if (schema == "aten::to.other") return other_fits(n, t) && is_false(n.arg(3)) && format_fits(n.arg(4), t, env);
  if (schema == "aten::type_as") return other_fits(n, t);
  if (schema == "aten::contiguous") return !n.arg(1).is_none() && format_fits(n.arg(1), t, env);
  if (schema == "aten::dropout" || schema == "aten::dropout_" || schema == "aten::feature_dropout" ||
      schema == "aten::alpha_dropout" || schema == "aten::feature_alpha_dropout")
    return is_number(n.arg(1), 0) || is_false(n.arg(2));
  return schema == "aten::positive" || schema == "aten::resolve_conj" || schema == "aten::resolve_neg" ||
         schema == "aten::lift_fresh";
}

Result<bool> canonicalize(PassContext& context) {
  bool changed = false;
  for (fx::Node* n : context.graph->nodes()) {
    if (n->op() != fx::Opcode::CallFunction || n->args().size() == 0) continue;
    fx::Node* operand = n->arg(0).node_or_null();
    if (!operand || !operand->tensor_type()) continue;
    bool same = returns_operand(*n, *operand->tensor_type(), context.env);
    if (!same && !is_call(*n, "aten::detach") && !is_call(*n, "aten::alias")) continue;
    auto replaced =
        n->replace_all_uses_with(operand, [same](fx::Node* user) { return same || user->op() != fx::Opcode::Output; });
    changed = changed || !replaced.empty();
    if (n->num_users() > 0) continue;  // the caller gets it
    context.graph->erase_node(n);
    changed = true;
  }
  return changed;
}

}  // namespace fxjit::inline v0::passes
