// Sixteen lanes of fp32 functions for the hand-written kernels. Coefficients are weighted minimax fits of the relative
// error, rounded to float; hand_check.cpp measures the ULP error of what comes out.
#pragma once
// g++ 12 takes the deliberately undefined operand inside its own intrinsics for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <limits>

namespace hand {

using Vec = __m512;

inline Vec splat(float value) { return _mm512_set1_ps(value); }

constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// ln 2 in two parts: the first has 11 trailing zero bits, so that its product with an exponent is exact.
constexpr float kLog2E = 1.44269504f;
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;

// Horner's scheme, highest coefficient first.
template <class... Rest>
inline Vec polynomial(Vec x, Vec value, Rest... rest) {
  ((value = _mm512_fmadd_ps(value, x, splat(rest))), ...);
  return value;
}

// exp for x in [-104, 89], which covers every result that is neither 0 nor infinity; NaN passes. 0.90 ULP at most.
// `scalef` rounds into the denormals and overflows to infinity by itself.
inline Vec exp_in_range(Vec x) {
  Vec n = _mm512_roundscale_ps(_mm512_mul_ps(x, splat(kLog2E)), kNearest);
  Vec r = _mm512_fnmadd_ps(n, splat(kLn2High), x);
  r = _mm512_fnmadd_ps(n, splat(kLn2Low), r);
  // e^r on |r| <= ln2 / 2, relative error 2^-28.
  Vec p =
      polynomial(r, splat(1.38145836e-3f), 8.36872403e-3f, 4.16683890e-2f, 1.66665211e-1f, 4.99999940e-1f, 1.0f, 1.0f);
  return _mm512_scalef_ps(p, n);
}

// min and max return their second operand when one is NaN: the argument goes there.
inline Vec exp(Vec x) { return exp_in_range(_mm512_min_ps(splat(89.0f), _mm512_max_ps(splat(-104.0f), x))); }

// For arguments that are never above zero, as in softmax: one clamp less.
inline Vec exp_nonpositive(Vec x) { return exp_in_range(_mm512_max_ps(splat(-104.0f), x)); }

// 1 / (1 + exp(-x)); the sign of x is folded into the reduction.
inline Vec sigmoid(Vec x) {
  x = _mm512_min_ps(splat(104.0f), _mm512_max_ps(splat(-89.0f), x));
  Vec e = exp_in_range(_mm512_sub_ps(_mm512_setzero_ps(), x));
  return _mm512_div_ps(splat(1.0f), _mm512_add_ps(splat(1.0f), e));
}

// em1 / (em1 + 2) with em1 = exp(2|x|) - 1 = 2^n * expm1(2s) + (2^n - 1): no cancellation near 0, one division.
// At |x| = 10 the result has long rounded to 1.
inline Vec tanh(Vec x) {
  const Vec sign = splat(-0.0f);
  Vec y = _mm512_min_ps(splat(10.0f), _mm512_andnot_ps(sign, x));
  Vec n = _mm512_roundscale_ps(_mm512_mul_ps(y, splat(2 * kLog2E)), kNearest);
  Vec s = _mm512_fnmadd_ps(n, splat(kLn2High / 2), y);
  s = _mm512_fnmadd_ps(n, splat(kLn2Low / 2), s);
  // (expm1(2s) - 2s) / s^2 on |s| <= ln2 / 4, relative error of expm1 2^-32: one degree less costs
  // 0.2 ULP where em1, the denominator and the quotient round at their worst, just below a power of two.
  Vec q = polynomial(s, splat(2.54027247e-2f), 8.92200842e-2f, 2.66668469e-1f, 6.66661799e-1f, 1.33333325f, 2.0f);
  q = _mm512_fmadd_ps(q, _mm512_mul_ps(s, s), _mm512_add_ps(s, s));
  Vec power = _mm512_scalef_ps(splat(1.0f), n);
  Vec em1 = _mm512_fmadd_ps(power, q, _mm512_sub_ps(power, splat(1.0f)));
  Vec t = _mm512_div_ps(em1, _mm512_add_ps(em1, splat(2.0f)));
  return _mm512_or_ps(t, _mm512_and_ps(sign, x));
}

// torch.maximum and torch.minimum: a NaN on either side wins. The instruction returns its second operand then.
inline Vec maximum(Vec a, Vec b) {
  return _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
}

inline Vec minimum(Vec a, Vec b) {
  return _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
}

inline Vec clamp(Vec x, float low, float high) { return _mm512_min_ps(splat(high), _mm512_max_ps(splat(low), x)); }

}  // namespace hand
