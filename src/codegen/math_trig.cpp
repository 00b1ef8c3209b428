// sin and cos: x = k pi/2 + r in three steps, exact in the first for |x| <= 30000 (k has 15 bits), then a polynomial by
// quadrant.
#include "codegen/math.h"

namespace fxjit::inline v0::codegen {
namespace {

Vec f32(Builder& b, double v) { return b.constant(v, DType::Float32); }
Vec i32(Builder& b, int64_t v) { return b.constant_int(v, DType::Int32); }

// sin(x + quarter turns * pi/2)
Vec sine(Builder& b, const Vec& x, int quarter_turns) {
  constexpr double kRounder = 0x1.8p23;
  const Vec image = b.fma(x, f32(b, 0.6366197723675814), f32(b, kRounder));
  const Vec k = b.sub(image, f32(b, kRounder));
  Vec r = b.fma(k, f32(b, -1.5707963705062866), x);
  r = b.fma(k, f32(b, 4.371138828673793e-08), r);
  r = b.fma(k, f32(b, 1.7151245100058819e-15), r);
  const Vec s = b.mul(r, r);
  const Vec p = b.horner(s, {2.837246939e-06, -0.0001985349809, 0.008333380334, -0.1666666716});
  const Vec sin = b.fma(p, b.mul(s, r), r);
  const Vec q = b.horner(s, {2.443066842e-05, -0.001388730132, 0.04166664556});
  const Vec cos = b.fma(b.fma(q, s, f32(b, -0.5)), s, f32(b, 1));
  const Vec quadrant = b.add(b.bits(image), i32(b, quarter_turns));
  const Vec use_cos = b.ne(b.and_(quadrant, i32(b, 1)), i32(b, 0));
  const Vec sign = b.shl_bits(b.and_(quadrant, i32(b, 2)), 30);
  return b.from_bits(b.xor_(b.bits(b.select(use_cos, cos, sin)), sign));
}

}  // namespace

Vec Builder::sin(const Vec& x) {
  // k = 0 leaves r = x, except that -0 + 0 is 0.
  return select(eq(x, f32(*this, 0)), x, sine(*this, x, 0));
}

Vec Builder::cos(const Vec& x) { return sine(*this, x, 1); }

}  // namespace fxjit::inline v0::codegen
