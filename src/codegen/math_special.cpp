// erf and pow.
#include "codegen/math.h"

namespace fxjit::inline v0::codegen {
namespace {

// log2 of a positive number in double precision, to 2^-43, from float: (m, e) as of split_exponent.
Vec log2_double(Builder& b, const Vec& x) {
  auto [m, e] = b.split_exponent(x);
  const Vec f = b.sub(b.cast(m, DType::Float32, DType::Float64), f64(b, 1));
  const Vec q = b.horner(f, {-0.023676937288352733, 0.07203895003248062, -0.10709677080211918, 0.11710787716811499,
                             -0.12136261579432395, 0.13075466023627702, -0.14412280037597711, 0.16030643378946116,
                             -0.18034373533747716, 0.2060994653231718, -0.24044902592626469, 0.28853900153505369,
                             -0.36067376159717496, 0.48089834701488804, -0.72134752044066075, 1.4426950408889092});
  return b.fma(f, q, b.cast(e, DType::Float32, DType::Float64));
}

// 2^z rounded once to float, denormals too: z is clamped to where the result is 0 or infinite.
Vec exp2_double(Builder& b, const Vec& z) {
  constexpr double kRounder = 0x1.8p52;
  const Vec clamped = b.raw_max(f64(b, -200), b.raw_min(f64(b, 200), z));
  const Vec image = b.add(clamped, f64(b, kRounder));
  const Vec r = b.sub(clamped, b.sub(image, f64(b, kRounder)));
  const Vec p =
      b.horner(r, {1.5316462328552855e-05, 0.00015469733057067424, 0.0013333422643649176, 0.0096180255994834218,
                   0.055504109761134249, 0.24022651213618165, 0.69314718053502355, 0.99999999995954791});
  return b.cast(b.mul(p, b.power_of_double_image(image)), DType::Float64, DType::Float32);
}

}  // namespace

// |x| <= 1: x + x p(x^2). Beyond: 1 - exp(-t - t q(t)), 1 from 3.92 on.
Vec Builder::erf(const Vec& x) {
  const Vec t = abs(x);
  const Vec s = mul(x, x);
  const Vec p = horner(
      s, {7.92036808e-05, -0.0008030761383, 0.00519073382, -0.02685512602, 0.1128361821, -0.3761262894, 0.1283791661});
  const Vec small = fma(p, x, x);
  const Vec bounded = raw_min(f32(*this, 4), t);
  const Vec q = horner(bounded, {1.354332835e-05, -0.0003462143068, 0.003738847794, -0.02396871336, 0.1064803302,
                                 0.6350017786, 0.1286859363});
  const Vec minus_t = neg(bounded);
  const Vec large = sub(f32(*this, 1), exp_bounded(*this, fma(q, minus_t, minus_t)));
  return select(gt(t, f32(*this, 1)), with_sign_of(large, x), small);
}

// 2^(y log2 |x|) in double; then C's special cases.
Vec Builder::pow(const Vec& x, const Vec& y) {
  const Vec one = f32(*this, 1);
  const Vec magnitude = abs(x);
  const Vec exponent = mul(log2_double(*this, magnitude), cast(y, DType::Float32, DType::Float64));
  Vec result = exp2_double(*this, exponent);
  // Sign: negative, zero's included, under an odd integer.
  const Vec half = mul(y, f32(*this, 0.5));
  const Vec integral = eq(trunc(y), y);
  const Vec odd = and_(integral, ne(trunc(half), half));
  result = select(odd, with_sign_of(result, x), result);
  // A negative finite number under a fraction has no real value.
  const Vec finite_negative =
      and_(lt(x, f32(*this, 0)), ne(magnitude, f32(*this, std::numeric_limits<double>::infinity())));
  const Vec invalid = and_(finite_negative, not_(integral));
  result = select(invalid, f32(*this, std::numeric_limits<double>::quiet_NaN()), result);
  // 1^y and x^0 are 1, NaN or not; (-1)^inf is 1.
  const Vec unit = and_(eq(magnitude, one), eq(abs(y), f32(*this, std::numeric_limits<double>::infinity())));
  return select(or_(or_(eq(x, one), eq(y, f32(*this, 0))), unit), one, result);
}

}  // namespace fxjit::inline v0::codegen
