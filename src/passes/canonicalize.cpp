#include "passes/canonicalize.h"

#include "passes/alias.h"
#include "passes/infer.h"
#include "passes/typed_builder.h"

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

// True where the caller may get the user's operand itself: what writes in place gives it back.
bool gives_on(const fx::Node& user) { return user.op() == fx::Opcode::Output || is_inplace(schema_of(user)); }

// split, chunk and unbind become a view per part that is used.
bool parts_to_views(fx::Node* n, TypedBuilder& build) {
  std::optional<Parts> cut = parts_of(*n, build.env());
  if (!cut) return false;
  const auto count = static_cast<int64_t>(cut->parts.size());
  for (const fx::Node* user : n->users()) {
    const bool part = is_call(*user, "_operator.getitem") && user->arg(1).is_int();
    if (!part || user->arg(1).as_int() < 0 || user->arg(1).as_int() >= count) return false;
  }
  fx::Node* x = n->arg(0).as_node();
  auto scope = build.graph().inserting_before(n);
  build.set_origin(n);
  for (fx::Node* user : n->users_vector()) {
    const Part& p = cut->parts[user->arg(1).as_int()];
    fx::Node* view = cut->select ? build.call("aten::select.int", {x, cut->dim, p.start})
                                 : build.call("aten::slice.Tensor", {x, cut->dim, p.start, p.end, 1});
    user->replace_all_uses_with(view);
    build.graph().erase_node(user);
  }
  build.graph().erase_node(n);
  return true;
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
  TypedBuilder build(*context.graph, context.env);
  for (fx::Node* n : context.graph->nodes()) {
    if (n->op() != fx::Opcode::CallFunction || n->args().size() == 0) continue;
    if (parts_to_views(n, build)) {
      changed = true;
      continue;
    }
    fx::Node* operand = n->arg(0).node_or_null();
    if (!operand || !operand->tensor_type()) continue;
    bool same = returns_operand(*n, *operand->tensor_type(), context.env);
    if (!same && !is_call(*n, "aten::detach") && !is_call(*n, "aten::alias")) continue;
    auto replaced = n->replace_all_uses_with(operand, [same](fx::Node* user) { return same || !gives_on(*user); });
    changed = changed || !replaced.empty();
    if (n->num_users() > 0) continue;  // the caller gets it
    context.graph->erase_node(n);
    changed = true;
  }
  return changed;
}

}  // namespace fxjit::inline v0::passes
