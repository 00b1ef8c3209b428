// How far the functions of hand_math.h are from the exact value, in ULP, over a sweep of all floats.
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "hand_loop.h"

namespace {

struct Function {
  const char* name;
  hand::Vec (*vector)(hand::Vec);
  double (*exact)(double);
  double budget;
};

double exact_exp(double x) { return std::exp(x); }
double exact_tanh(double x) { return std::tanh(x); }
double exact_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

constexpr Function kFunctions[] = {
    {"exp", hand::exp, exact_exp, 1.0},
    {"sigmoid", hand::sigmoid, exact_sigmoid, 2.5},
    {"tanh", hand::tanh, exact_tanh, 2.5},
};

// Compares one result, and keeps the worst.
void judge(float x, float got, double exact, HandAccuracy& result) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(rounded) || exact == 0.0) {
    // An exact zero keeps its sign, and the last half ULP before infinity may round either way.
    const bool same = std::isnan(exact) ? std::isnan(got)
                      : exact == 0.0    ? got == 0.0f && std::signbit(got) == std::signbit(exact)
                                        : got == rounded || got == std::copysign(FLT_MAX, rounded);
    result.wrong += same ? 0 : 1;
    return;
  }
  if (std::fabs(exact) < FLT_MIN) {
    // Below the normal numbers eager's value counts too, and eager may flush: only a gross error is one.
    result.wrong += std::fabs(got - exact) <= FLT_MIN ? 0 : 1;
    return;
  }
  const double error = std::fabs(got - exact) / std::ldexp(1.0, std::ilogb(exact) - 23);
  if (!(error <= result.max_ulp)) {  // a NaN where there is none counts as the worst
    result.max_ulp = error;
    result.at = x;
  }
}

void sweep(const Function& function, uint32_t stride, HandAccuracy& result) {
  alignas(64) float x[hand::kLanes];
  alignas(64) float got[hand::kLanes];
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += uint64_t{stride} * hand::kLanes) {
    for (int64_t i = 0; i < hand::kLanes; ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(bits + i * stride));
    _mm512_store_ps(got, function.vector(_mm512_load_ps(x)));
    for (int64_t i = 0; i < hand::kLanes; ++i) judge(x[i], got[i], function.exact(x[i]), result);
  }
}

void specials(const Function& function, HandAccuracy& result) {
  const float inf = std::numeric_limits<float>::infinity();
  const float values[] = {0.0f,     -0.0f,   inf,      -inf,         std::nanf(""), FLT_MAX,
                          -FLT_MAX, FLT_MIN, -FLT_MIN, FLT_TRUE_MIN, 1.0f};
  alignas(64) float got[hand::kLanes];
  for (float x : values) {
    _mm512_store_ps(got, function.vector(hand::splat(x)));
    judge(x, got[0], function.exact(x), result);
  }
}

}  // namespace

int32_t hand_accuracy(const char* name, uint32_t stride, HandAccuracy* result) {
  for (const Function& function : kFunctions) {
    if (std::strcmp(function.name, name) != 0) continue;
    *result = HandAccuracy{0.0, 0.0f, function.budget, 0};
    specials(function, *result);
    sweep(function, stride == 0 ? 1 : stride, *result);
    return 0;
  }
  return 1;
}
