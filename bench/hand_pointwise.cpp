// The pointwise kernels and the table of all kernels.
#include <cstring>

#include "hand_loop.h"

namespace hand {
namespace {

struct Copy {
  Vec operator()(Vec x) const { return x; }
};

struct Sigmoid {
  Vec operator()(Vec x) const { return sigmoid(x); }
};

struct Tanh {
  Vec operator()(Vec x) const { return tanh(x); }
};

struct Exp {
  Vec operator()(Vec x) const { return exp(x); }
};

struct Add {
  Vec operator()(Vec a, Vec b) const { return _mm512_add_ps(a, b); }
};

// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))), eight operators, each rounded on its own as eager
// rounds it.
struct GeluTanh {
  Vec operator()(Vec x) const {
    Vec half = _mm512_mul_ps(splat(0.5f), x);
    Vec cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
    Vec inner = _mm512_add_ps(x, _mm512_mul_ps(splat(0.044715f), cube));
    Vec t = tanh(_mm512_mul_ps(splat(0.7978845608028654f), inner));
    return _mm512_mul_ps(half, _mm512_add_ps(splat(1.0f), t));
  }
};

// Twelve operators without a transcendental function; the twin of chain12 in cases.py:
//   b = (x * 1.5 + y - x) * y;  e = (maximum(b, x).abs() + 0.25).sqrt();  relu(minimum(b / e, y)) * 0.5
struct Chain12 {
  Vec operator()(Vec x, Vec y) const {
    Vec a = _mm512_add_ps(_mm512_mul_ps(x, splat(1.5f)), y);
    Vec b = _mm512_mul_ps(_mm512_sub_ps(a, x), y);
    Vec c = _mm512_add_ps(_mm512_abs_ps(maximum(b, x)), splat(0.25f));
    Vec f = minimum(_mm512_div_ps(b, _mm512_sqrt_ps(c)), y);
    return _mm512_mul_ps(_mm512_max_ps(_mm512_setzero_ps(), f), splat(0.5f));
  }
};

// where(x > y, x, y * 0.1).clamp(-1, 1)
struct WhereClamp {
  Vec operator()(Vec x, Vec y) const {
    const __mmask16 greater = _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ);
    return clamp(_mm512_mask_mov_ps(_mm512_mul_ps(y, splat(0.1f)), greater, x), -1.0f, 1.0f);
  }
};

struct Row {
  const char* name;
  HandKernel kernel;
  int64_t element;  // bytes of one element of the output; 0: count is in bytes
  bool rows;
};

constexpr Row kKernels[] = {
    {"copy", pointwise<Float, Copy, 0>, 0, false},
    {"exp", pointwise<Float, Exp, 0>, 4, false},
    {"tanh", pointwise<Float, Tanh, 0>, 4, false},
    {"sigmoid", pointwise<Float, Sigmoid, 0>, 4, false},
    {"sigmoid_lowp", pointwise<Half, Sigmoid, 0>, 2, false},
    {"add_lowp", pointwise<Half, Add, 0, 1>, 2, false},
    {"gelu_tanh", pointwise<Float, GeluTanh, 0>, 4, false},
    {"chain12", pointwise<Float, Chain12, 0, 1>, 4, false},
    {"where_clamp", pointwise<Float, WhereClamp, 0, 1>, 4, false},
    {"softmax", softmax, 4, true},
    {"layer_norm", layer_norm, 4, true},
    {"rms_norm", rms_norm, 4, true},
};
constexpr int64_t kKernelCount = sizeof(kKernels) / sizeof(kKernels[0]);

const Row* find(const char* name) {
  for (const Row& row : kKernels) {
    if (std::strcmp(row.name, name) == 0) return &row;
  }
  return nullptr;
}

}  // namespace
}  // namespace hand

const char* hand_name(int64_t index) {
  return index >= 0 && index < hand::kKernelCount ? hand::kKernels[index].name : nullptr;
}

int32_t hand_run(const char* name, const HandArgs* args, HandParallel parallel) {
  const hand::Row* row = hand::find(name);
  if (row == nullptr) return 1;
  if (row->rows && args->cols % hand::kStep != 0) return 2;
  hand::Call call{*args, false};
  if (row->element == 0) call.args.count /= sizeof(float);
  const int64_t element = row->element == 0 ? sizeof(float) : row->element;
  const bool aligned = reinterpret_cast<uintptr_t>(args->out) % 64 == 0;
  call.stream = !row->rows && aligned && call.args.count * element >= hand::kStreamBytes;
  const int64_t blocks = row->rows ? args->count : hand::ceil_div(call.args.count, hand::kBlock);
  const int64_t grain = row->rows ? hand::ceil_div(hand::kBlock, args->cols) : 1;
  if (parallel != nullptr) return parallel(0, blocks, grain, row->kernel, &call);
  row->kernel(0, blocks, &call);
  return 0;
}
