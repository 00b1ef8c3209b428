// Kernels over the rows of a matrix. A row stays in the first-level cache between its passes, so a pass costs
// arithmetic only; four accumulators hide the latency of an addition. Columns are a multiple of 64.
#include <cmath>

#include "hand_loop.h"

namespace hand {
namespace {

constexpr int kParts = 4;

struct Matrix {
  explicit Matrix(void* ctx)
      : args(static_cast<const Call*>(ctx)->args),
        in(static_cast<const float*>(args.in[0])),
        out(static_cast<float*>(args.out)) {}
  const float* source(int64_t row) const { return in + row * args.cols; }
  float* target(int64_t row) const { return out + row * args.cols; }

  const HandArgs& args;
  const float* in;
  float* out;
};

// The sum of term(i) over the columns of a row, term giving sixteen of them.
template <class Term>
inline float row_sum(int64_t cols, Term term) {
  Vec part[kParts] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
  for (int64_t i = 0; i < cols; i += kStep) {
#pragma GCC unroll 4
    for (int u = 0; u < kParts; ++u) part[u] = _mm512_add_ps(part[u], term(i + u * kLanes));
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(part[0], part[1]), _mm512_add_ps(part[2], part[3])));
}

inline float row_max(const float* in, int64_t cols) {
  Vec part[kParts];
  for (int u = 0; u < kParts; ++u) part[u] = splat(-std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < cols; i += kStep) {
#pragma GCC unroll 4
    for (int u = 0; u < kParts; ++u) part[u] = _mm512_max_ps(part[u], _mm512_loadu_ps(in + i + u * kLanes));
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(part[0], part[1]), _mm512_max_ps(part[2], part[3])));
}

}  // namespace

// A NaN need not survive the maximum: it comes back through the sum of the exponentials, and so spoils its whole row.
void softmax(int64_t begin, int64_t end, void* ctx) {
  const Matrix m(ctx);
  for (int64_t row = begin; row < end; ++row) {
    const float* in = m.source(row);
    float* out = m.target(row);
    const Vec top = splat(row_max(in, m.args.cols));
    const float sum = row_sum(m.args.cols, [&](int64_t i) {
      Vec e = exp_nonpositive(_mm512_sub_ps(_mm512_loadu_ps(in + i), top));
      _mm512_storeu_ps(out + i, e);
      return e;
    });
    const Vec scale = splat(1.0f / sum);
    for (int64_t i = 0; i < m.args.cols; i += kLanes) {
      _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_loadu_ps(out + i), scale));
    }
  }
}

// One operator with weight and bias: what happens inside it may be contracted. Two passes, since the sum of squares
// minus the square of the sum cancels.
void layer_norm(int64_t begin, int64_t end, void* ctx) {
  const Matrix m(ctx);
  const float* weight = static_cast<const float*>(m.args.in[1]);
  const float* bias = static_cast<const float*>(m.args.in[2]);
  const float columns = static_cast<float>(m.args.cols);
  for (int64_t row = begin; row < end; ++row) {
    const float* in = m.source(row);
    float* out = m.target(row);
    const Vec mean = splat(row_sum(m.args.cols, [&](int64_t i) { return _mm512_loadu_ps(in + i); }) / columns);
    const float squares = row_sum(m.args.cols, [&](int64_t i) {
      Vec d = _mm512_sub_ps(_mm512_loadu_ps(in + i), mean);
      return _mm512_mul_ps(d, d);
    });
    const Vec scale = splat(1.0f / std::sqrt(squares / columns + m.args.eps));
    for (int64_t i = 0; i < m.args.cols; i += kLanes) {
      Vec d = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(in + i), mean), scale);
      _mm512_storeu_ps(out + i, _mm512_fmadd_ps(d, _mm512_loadu_ps(weight + i), _mm512_loadu_ps(bias + i)));
    }
  }
}

// x * rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight, written out: the square is rounded before it is summed.
void rms_norm(int64_t begin, int64_t end, void* ctx) {
  const Matrix m(ctx);
  const float* weight = static_cast<const float*>(m.args.in[1]);
  const float columns = static_cast<float>(m.args.cols);
  for (int64_t row = begin; row < end; ++row) {
    const float* in = m.source(row);
    float* out = m.target(row);
    const float squares = row_sum(m.args.cols, [&](int64_t i) {
      Vec x = _mm512_loadu_ps(in + i);
      return _mm512_mul_ps(x, x);
    });
    const Vec scale = splat(1.0f / std::sqrt(squares / columns + m.args.eps));
    for (int64_t i = 0; i < m.args.cols; i += kLanes) {
      Vec x = _mm512_mul_ps(_mm512_loadu_ps(in + i), scale);
      _mm512_storeu_ps(out + i, _mm512_mul_ps(x, _mm512_loadu_ps(weight + i)));
    }
  }
}

}  // namespace hand
