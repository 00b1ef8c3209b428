// exp, exp2, expm1, sigmoid, tanh. Clamps keep the argument reduction finite for infinities; raw_min and raw_max take
// their second operand when it is NaN, so NaN goes through. Where the target scales by any power the remainder is
// bounded instead: it is NaN for infinities and arbitrary for what is far out, and the power alone makes the result 0,
// infinite or NaN.
#include "codegen/math.h"

namespace fxjit::inline v0::codegen {
namespace {

// Adding 1.5 * 2^23 rounds to an integer, to nearest even, and leaves it in the low mantissa bits.
constexpr double kRounder = 0x1.8p23;
constexpr double kLog2E = 1.4426950408889634;
// 16 bits, so that n * kLn2High is exact, and the rest.
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.428606765330187e-06;

Vec clamp(Builder& b, const Vec& x, double low, double high) {
  return b.raw_max(f32(b, low), b.raw_min(f32(b, high), x));
}

// 1 + r + r^2 q(r), error of the polynomial 2^-28.2; all of exp is within 0.99 ulp.
Vec exp_reduced(Builder& b, const Vec& r) {
  return b.horner(r, {0.001381981419399381, 0.008368687704205513, 0.04166827723383904, 0.16666521131992340,
                      0.4999999403953552, 1, 1});
}

// Beyond the clamps the result is 0 or infinite.
Vec exp_anywhere(Builder& b, const Vec& x) {
  const bool any = b.hooks().scales_by_any_power();
  ExpReduction reduced = reduce_exp(b, any ? x : clamp(b, x, -104, 89));
  if (any) reduced.r = b.bound_remainder(reduced.r, 0.5);
  return b.scale_by_power_of_two(exp_reduced(b, reduced.r), reduced.n, reduced.image);
}

}  // namespace

ExpReduction reduce_exp(Builder& b, const Vec& x) {
  const Vec image = b.fma(x, f32(b, kLog2E), f32(b, kRounder));
  const Vec n = b.sub(image, f32(b, kRounder));
  Vec r = b.fma(n, f32(b, -kLn2High), x);
  r = b.fma(n, f32(b, -kLn2Low), r);
  return {n, r, image};
}

Vec power_of_image(Builder& b, const Vec& image) {
  const Vec shifted = b.shl_bits(b.bits(image), 23);  // shifts the rounder's own bits out
  return b.from_bits(b.add(shifted, b.constant_int(127 << 23, DType::Int32)));
}

Vec expm1_reduced(Builder& b, const Vec& r) {
  const Vec q = b.horner(r, {0.0001994425692828372, 0.001393268583342433, 0.008333208039402962, 0.04166648909449577,
                             0.1666666716337204, 0.5});
  return b.fma(q, b.mul(r, r), r);
}

Vec exp_bounded(Builder& b, const Vec& x) {
  const ExpReduction reduced = reduce_exp(b, x);
  return b.mul(exp_reduced(b, reduced.r), power_of_image(b, reduced.image));
}

// e^-104 is below half the smallest denormal, e^89 above the largest float.
Vec Builder::exp(const Vec& x) { return exp_anywhere(*this, x); }

Vec Builder::exp2(const Vec& x) {
  const bool any = hooks_.scales_by_any_power();
  const Vec clamped = any ? x : clamp(*this, x, -151, 129);
  const Vec image = add(clamped, f32(*this, kRounder));
  const Vec n = sub(image, f32(*this, kRounder));
  Vec r = sub(clamped, n);
  if (any) r = bound_remainder(r, 0.5);
  const Vec q = horner(r, {1.4674897102e-05, 0.0001545186242, 0.001333665685, 0.009618087672, 0.05550406128,
                           0.2402265072, 0.6931471824645996});
  return scale_by_power_of_two(fma(q, r, f32(*this, 1)), n, image);
}

// 2 ((2^(n-1) - 1/2) + 2^(n-1) p), so that n = 128 does not overflow before the result does.
Vec Builder::expm1(const Vec& x) {
  const ExpReduction reduced = reduce_exp(*this, clamp(*this, x, -20, 89));
  const Vec p = expm1_reduced(*this, reduced.r);
  const Vec half = power_of_image(*this, sub(reduced.image, f32(*this, 1)));
  const Vec result = fma(p, half, sub(half, f32(*this, 0.5)));
  return with_sign_of(add(result, result), x);
}

// Where e^-x overflows the result is 0, as eager's; the exact value is a denormal.
Vec Builder::sigmoid(const Vec& x) {
  const Vec e = exp_anywhere(*this, neg(x));
  return div(f32(*this, 1), add(e, f32(*this, 1)));
}

// em1 / (em1 + 2) with em1 = e^2|x| - 1: one polynomial, one division. Beyond 10 the result rounds to 1. From the side
// of positive x, where an error of em1 is divided by more than it counts; from the other it would count double.
Vec Builder::tanh(const Vec& x) {
  const Vec clamped = raw_min(f32(*this, 10), abs(x));
  const ExpReduction reduced = reduce_exp(*this, add(clamped, clamped));
  const Vec p = expm1_reduced(*this, reduced.r);
  const Vec s = power_of_image(*this, reduced.image);
  const Vec em1 = fma(p, s, sub(s, f32(*this, 1)));
  return with_sign_of(div(em1, add(em1, f32(*this, 2))), x);
}

}  // namespace fxjit::inline v0::codegen
