// Rules of special.def: sums with alpha, powers, bounds, and the fused multiply-adds.
#include <cmath>

#include "kernel/lower/rules.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using ops::OpId;
using support::concat;

namespace {

bool is_literal(const Operand& o, double v) { return o.is_literal() && o.as_double() == v; }

Operand negated(const Operand& o) {
  Operand out = o;
  if (is_floating(o.dtype)) {
    out.number = ops::Value::of(-o.number.f());
  } else {
    out.dtype = DType::Int64;
    out.number = ops::Value::of(static_cast<int64_t>(uint64_t{0} - o.number.bits));
  }
  return out;
}

// x + alpha * y; for alpha other than 1 eager rounds once, with alpha rounded to the type.
int sum_with_alpha(Builder& b, const Call& c, OpId id, const Operand& x, const Operand& y, Operand alpha) {
  if (b.failure()) return -1;
  const DType t = common_type(b, {x, y});
  if (is_literal(alpha, 1) && (alpha.dtype != DType::Bool || t == DType::Bool)) {
    const Operand xs[] = {x, y};
    return lower_row(b, c, id, xs);
  }
  if (!is_floating(t) && is_floating(alpha.dtype)) return b.fail(concat(c.schema, ": a floating alpha for integers"));
  if (alpha.dtype == DType::Bool) return b.fail(concat(c.schema, ": a bool alpha"));
  if (id == OpId::sub && !alpha.is_literal()) return b.fail(concat(c.schema, ": an alpha that varies"));
  if (id == OpId::sub) alpha = negated(alpha);
  return b.op(OpId::muladd, {b.element(c, x, t), b.element(c, y, t), b.parameter(c, alpha, t)});
}

bool has_bool(const Operand& x, const Operand& y) { return x.dtype == DType::Bool || y.dtype == DType::Bool; }

}  // namespace

int lower_add(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), y = b.operand(b.argument(c, 1));
  return sum_with_alpha(b, c, OpId::add, x, y, operand_or(b, c, 2, "alpha", 1));
}

int lower_sub(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), y = b.operand(b.argument(c, 1));
  if (has_bool(x, y)) return b.fail(concat(c.schema, ": eager refuses bool"));
  return sum_with_alpha(b, c, OpId::sub, x, y, operand_or(b, c, 2, "alpha", 1));
}

int lower_rsub(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), y = b.operand(b.argument(c, 1));
  if (has_bool(x, y)) return b.fail(concat(c.schema, ": eager refuses bool"));
  return sum_with_alpha(b, c, OpId::sub, y, x, operand_or(b, c, 2, "alpha", 1));
}

int lower_div_mode(Builder& b, const Call& c) {
  const Operand xs[] = {b.operand(b.argument(c, 0)), b.operand(b.argument(c, 1))};
  const fx::Argument mode = b.argument(c, 2, "rounding_mode");
  if (mode.is_none()) return lower_row(b, c, OpId::div, xs);
  if (mode.as_str() == "trunc") return lower_row(b, c, OpId::div_trunc, xs);
  return b.fail(concat(c.schema, ": rounding mode ", mode.as_str(), " takes an exact remainder"));
}

int lower_square(Builder& b, const Call& c) {
  // The power of 2: bool becomes an integer.
  const Operand x = b.operand(b.argument(c, 0));
  return b.failure() ? -1 : b.op(OpId::square, {b.element(c, x, common_type(b, {x, b.operand(2)}))});
}

namespace {

// Exponents for which eager has kernels of their own.
int special_power(Builder& b, int x, double exponent) {
  if (exponent == 2) return b.op(OpId::square, {x});
  if (exponent == 3) return b.op(OpId::mul, {b.op(OpId::square, {x}), x});
  if (exponent == 0.5) return b.op(OpId::sqrt, {x});
  if (exponent == -0.5) return b.op(OpId::rsqrt, {x});
  if (exponent == -1) return b.op(OpId::reciprocal, {x});
  if (exponent == -2) return b.op(OpId::reciprocal, {b.op(OpId::square, {x})});
  return -1;
}

bool is_special_power(double e) { return e == 2 || e == 3 || e == 0.5 || e == -0.5 || e == -1 || e == -2; }

}  // namespace

int lower_pow(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), y = b.operand(b.argument(c, 1));
  if (b.failure()) return -1;
  const DType t = common_type(b, {x, y});
  if (t == DType::Bool) return b.fail(concat(c.schema, ": bool"));
  if (y.is_literal() && y.as_double() == 0) return b.constant(t, 1);
  if (y.is_literal() && y.as_double() == 1) return b.element(c, x, t);
  const double e = y.is_literal() ? y.as_double() : 0;
  if (!is_floating(t)) {
    if (e == 2 || e == 3) return special_power(b, b.element(c, x, t), e);
    return b.fail(concat(c.schema, ": an integer power that is not 0 to 3"));
  }
  // Eager takes a square root for the powers of one half, but not of float16: (-inf)^0.5 is inf there, not NaN.
  const bool is_root = e == 0.5 || e == -0.5;
  if (is_special_power(e) && !(is_root && t == DType::Float16)) {
    // float16 takes the steps in float32; bfloat16 rounds after each.
    const DType steps = t == DType::Float16 ? DType::Float32 : t;
    return b.cast(special_power(b, b.cast(b.element(c, x, t), steps), e), t);
  }
  return b.op(OpId::pow, {b.element(c, x, t), b.element(c, y, t)});
}

namespace {

// Of a number that is no number eager's kernels make different things. (One of the host is guarded.)
int bound(Builder& b, const Call& c, const Operand& o, DType t) {
  if (o.is_literal() && std::isnan(o.as_double())) return b.fail(concat(c.schema, ": a bound that is NaN"));
  return o.is_number() ? b.parameter(c, o, t) : b.element(c, o, t);
}

int one_bound(Builder& b, const Call& c, OpId id, const Operand& x, const Operand& limit) {
  if (b.failure()) return -1;
  const DType t = common_type(b, {x, limit});
  return b.op(id, {bound(b, c, limit, t), b.element(c, x, t)});
}

}  // namespace

int lower_clamp(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0));
  const fx::Argument low = b.argument(c, 1, "min"), high = b.argument(c, 2, "max");
  if (low.is_none() && high.is_none()) return b.fail(concat(c.schema, ": without bounds"));
  if (high.is_none()) return one_bound(b, c, OpId::maximum, x, b.operand(low));
  if (low.is_none()) return one_bound(b, c, OpId::minimum, x, b.operand(high));
  const Operand lower = b.operand(low), upper = b.operand(high);
  if (b.failure()) return -1;
  const DType t = common_type(b, {x, lower, upper});
  return b.op(OpId::clamp, {b.element(c, x, t), bound(b, c, lower, t), bound(b, c, upper, t)});
}

int lower_clamp_min(Builder& b, const Call& c) {
  return one_bound(b, c, OpId::maximum, b.operand(b.argument(c, 0)), b.operand(b.argument(c, 1, "min")));
}

int lower_clamp_max(Builder& b, const Call& c) {
  return one_bound(b, c, OpId::minimum, b.operand(b.argument(c, 0)), b.operand(b.argument(c, 1, "max")));
}

int lower_addcmul(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), y = b.operand(b.argument(c, 1)), z = b.operand(b.argument(c, 2));
  const Operand v = operand_or(b, c, 3, "value", 1);
  if (b.failure()) return -1;
  const DType t = common_type(b, {x, y, z}), wide = compute_type(t);
  auto in = [&](const Operand& o) { return b.cast(b.element(c, o, t), wide); };
  const int scaled = is_literal(v, 1) ? in(y) : b.op(OpId::mul, {b.parameter(c, v, wide), in(y)});
  return b.cast(b.op(OpId::muladd, {in(x), scaled, in(z)}), t);
}

int lower_addcdiv(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), y = b.operand(b.argument(c, 1)), z = b.operand(b.argument(c, 2));
  const Operand v = operand_or(b, c, 3, "value", 1);
  if (b.failure()) return -1;
  const DType t = common_type(b, {x, y, z}), wide = compute_type(t);
  auto in = [&](const Operand& o) { return b.cast(b.element(c, o, t), wide); };
  const int scaled = is_literal(v, 1) ? in(y) : b.op(OpId::mul, {b.parameter(c, v, wide), in(y)});
  return b.cast(b.op(OpId::add, {in(x), b.op(OpId::div, {scaled, in(z)})}), t);
}

int lower_lerp_scalar(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), y = b.operand(b.argument(c, 1)), w = b.operand(b.argument(c, 2));
  if (b.failure()) return -1;
  if (x.dtype != y.dtype) return b.fail(concat(c.schema, ": two element types"));
  const DType t = x.dtype, wide = compute_type(t);
  auto in = [&](const Operand& o) { return b.cast(b.element(c, o, t), wide); };
  return b.cast(b.op(OpId::lerp, {in(x), in(y), b.parameter(c, w, wide)}), t);
}

}  // namespace fxjit::inline v0::kernel
