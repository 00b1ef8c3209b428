// Logarithms: x = m 2^e with 0.75 <= m < 1.5, f = m - 1, log(1 + f) by a polynomial. The specials come out of
// split_exponent's values for them.
#include "codegen/math.h"

namespace fxjit::inline v0::codegen {
namespace {

// log(1 + f) for -0.25 <= f < 0.5, relative error below 2^-27.6 before rounding.
Vec log1p_reduced(Builder& b, const Vec& f) {
  const Vec q = b.horner(f, {-0.04617579653859138, 0.1058304980397224, -0.1318638324737549, 0.1446746736764908,
                             -0.1664377599954605, 0.1999111324548721, -0.2500019371509552, 0.3333344757556915, -0.5});
  return b.fma(q, b.mul(f, f), f);
}

}  // namespace

// e ln 2 is rounded with the sum: ln 2 as one float is off by 2^-28.4 of it.
Vec Builder::log(const Vec& x) {
  const auto [m, e] = split_exponent(x);
  return fma(e, f32(*this, 0.6931471805599453), log1p_reduced(*this, sub(m, f32(*this, 1))));
}

// |f| below sqrt(2) - 1, so that its logarithm, rounded before e is added, is below 1/2: with f up to 1/2 the error
// was 1.51 ulp.
Vec Builder::log2(const Vec& x) {
  const auto [m, e] = split_exponent(x);
  const Vec large = gt(m, f32(*this, 1.41421356));
  const Vec f = sub(select(large, mul(m, f32(*this, 0.5)), m), f32(*this, 1));
  const Vec n = select(large, add(e, f32(*this, 1)), e);
  const Vec q = horner(f, {-0.1129735857, 0.1873466372, -0.1903672814, 0.2043728232, -0.2396809012, 0.2885812223,
                           -0.3606939614, 0.4808979928, -0.7213473916});
  const Vec low = fma(q, mul(f, f), mul(f, f32(*this, 1.925963033500011e-08)));
  return add(n, fma(f, f32(*this, 1.4426950216293335), low));
}

// log10(2) in 11 bits, so that its product with e is exact, and the rest, positive as an infinite e wants it.
Vec Builder::log10(const Vec& x) {
  const auto [m, e] = split_exponent(x);
  const Vec f = sub(m, f32(*this, 1));
  const Vec q = horner(f, {-0.02023618855, 0.04614947364, -0.05728441849, 0.06279679388, -0.07227535546, 0.08682228625,
                           -0.1085749865, 0.1447652876, -0.2171472311});
  const Vec low = fma(q, mul(f, f), mul(f, f32(*this, -1.0103049952192578e-08)));
  const Vec mantissa = fma(f, f32(*this, 0.4342944920063019), fma(e, f32(*this, 4.605038981195214e-06), low));
  return fma(e, f32(*this, 0.301025390625), mantissa);
}

// log(1 + x) with the exponent of the rounded sum but f = (1 + x) 2^-e - 1 from x itself, with one rounding.
Vec Builder::log1p(const Vec& x) {
  const Vec one = f32(*this, 1);
  const auto [m, e] = split_exponent(add(x, one));
  const Vec bounded = raw_min(f32(*this, 128), raw_max(f32(*this, -30), e));
  const Vec s = scale_by_power_of_two(one, neg(bounded), sub(f32(*this, 0x1.8p23), bounded));
  const Vec f = fma(x, s, sub(s, one));
  const Vec result = fma(bounded, f32(*this, 0.6931471805599453), log1p_reduced(*this, f));
  // -1 gives (1, -inf), infinity (1, inf), what is below -1 (NaN, any): their sum is the result.
  const Vec regular = and_(gt(x, f32(*this, -1)), lt(x, f32(*this, std::numeric_limits<double>::infinity())));
  return with_sign_of(select(regular, result, add(e, m)), x);
}

}  // namespace fxjit::inline v0::codegen
