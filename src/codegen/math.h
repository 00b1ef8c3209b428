// Parts that several math functions share. All but constants are for float32; coefficients come from
// tools/math/minimax.py.
#pragma once

#include "codegen/builder.h"

namespace fxjit::inline v0::codegen {

inline Vec f32(Builder& b, double v) { return b.constant(v, DType::Float32); }
inline Vec f64(Builder& b, double v) { return b.constant(v, DType::Float64); }
inline Vec i32(Builder& b, int64_t v) { return b.constant_int(v, DType::Int32); }

// x = n ln 2 + r, |r| <= ln 2 / 2: n as a float, and `image`, a float whose low mantissa bits hold n in two's
// complement. For |x| < 2^20.
struct ExpReduction {
  Vec n, r, image;
};
ExpReduction reduce_exp(Builder& b, const Vec& x);

// 2^n from the image, by integer arithmetic: n in [-126, 127].
Vec power_of_image(Builder& b, const Vec& image);

// e^x - 1 for the reduced argument.
Vec expm1_reduced(Builder& b, const Vec& r);

// e^x for -87 <= x <= 88, without specials.
Vec exp_bounded(Builder& b, const Vec& x);

}  // namespace fxjit::inline v0::codegen
