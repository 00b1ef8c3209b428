// Rules of special.def: activations with parameters. Their parameters do not promote, and half types take them
// unrounded unless the rule says otherwise.
#include "kernel/lower/rules.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using ops::OpId;
using support::concat;

namespace {

struct Unary {
  Operand x;
  DType t;     // the operand's and the result's type
  DType wide;  // in which it is computed
};

Unary unary(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0));
  return {x, x.dtype, compute_type(x.dtype)};
}

int wide_element(Builder& b, const Call& c, const Unary& u) { return b.cast(b.element(c, u.x, u.t), u.wide); }

}  // namespace

int lower_hardtanh(Builder& b, const Call& c) {
  const bool relu6 = c.schema == "aten::relu6";
  const Unary u = unary(b, c);
  const Operand low = relu6 ? b.operand(0) : operand_or(b, c, 1, "min_val", -1);
  const Operand high = relu6 ? b.operand(6) : operand_or(b, c, 2, "max_val", 1);
  // The bounds are rounded to the type here.
  return b.op(OpId::clamp, {b.element(c, u.x, u.t), b.parameter(c, low, u.t), b.parameter(c, high, u.t)});
}

int lower_gelu(Builder& b, const Call& c) {
  const Unary u = unary(b, c);
  const fx::Argument mode = b.argument(c, 1, "approximate");
  const bool tanh = !mode.is_none() && mode.as_str() == "tanh";
  return b.op(tanh ? OpId::gelu_tanh : OpId::gelu, {b.element(c, u.x, u.t)});
}

int lower_leaky_relu(Builder& b, const Call& c) {
  const Unary u = unary(b, c);
  const Operand slope = operand_or(b, c, 1, "negative_slope", 0.01);
  return b.cast(b.op(OpId::leaky_relu, {wide_element(b, c, u), b.parameter(c, slope, u.wide)}), u.t);
}

int lower_softplus(Builder& b, const Call& c) {
  const Unary u = unary(b, c);
  const Operand beta = operand_or(b, c, 1, "beta", 1), limit = operand_or(b, c, 2, "threshold", 20);
  const int x = wide_element(b, c, u);
  return b.cast(b.op(OpId::softplus, {x, b.parameter(c, beta, u.wide), b.parameter(c, limit, u.wide)}), u.t);
}

int lower_threshold(Builder& b, const Call& c) {
  const Unary u = unary(b, c);
  const Operand limit = b.operand(b.argument(c, 1)), v = b.operand(b.argument(c, 2));
  const int x = wide_element(b, c, u);
  return b.cast(b.op(OpId::threshold, {x, b.parameter(c, limit, u.wide), b.parameter(c, v, u.wide)}), u.t);
}

int lower_elu(Builder& b, const Call& c) {
  double alpha = 1, scale = 1, input_scale = 1;
  auto literal = [&](size_t i, std::string_view name, double otherwise) {
    const Operand o = operand_or(b, c, i, name, otherwise);
    if (!o.is_literal()) b.fail(concat(c.schema, ": a parameter that is no literal"));
    return b.failure() ? 1.0 : o.as_double();
  };
  if (c.schema == "aten::selu") {
    alpha = 1.6732632423543772848170429916717;
    scale = 1.0507009873554804934193349852946;
  } else {
    alpha = literal(1, "alpha", 1);
    if (c.schema == "aten::celu") {
      input_scale = 1.0 / alpha;
    } else {
      scale = literal(2, "scale", 1);
      input_scale = literal(3, "input_scale", 1);
    }
  }
  const Unary u = unary(b, c);
  if (b.failure()) return -1;
  const double negative =
      u.wide == DType::Float32 ? double{static_cast<float>(alpha) * static_cast<float>(scale)} : alpha * scale;
  const int x = wide_element(b, c, u);
  auto scaled = [&](int v, double by) { return b.op(OpId::mul, {v, b.parameter(c, b.operand(by), u.wide)}); };
  const int below = scaled(b.op(OpId::expm1, {scaled(x, input_scale)}), negative);
  return b.cast(b.op(OpId::where, {b.op(OpId::gt, {x, b.constant(u.wide, 0)}), scaled(x, scale), below}), u.t);
}

}  // namespace fxjit::inline v0::kernel
