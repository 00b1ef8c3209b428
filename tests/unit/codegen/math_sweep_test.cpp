// Every function of math.def over the whole range of float32, on each target, against the exact value in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "harness.h"

namespace fxjit::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Function {
  const char* name;
  int arity;
  double budget;
  double (*exact)(double, double);
};

const Function kFunctions[] = {
#define FXJIT_MATH(name, arity, ulp, low, high, exact) \
  {#name, arity, ulp, []([[maybe_unused]] double x, [[maybe_unused]] double y) -> double { return exact; }},
#include "fxjit/ops/math.def"
};

kernel::Kernel kernel_of(const Function& f) {
  std::string text = "kernel\n  axes parallel\n  b0 = in f32 [unit]\n";
  if (f.arity == 2) text += "  b1 = in f32 [unit]\n";
  const std::string out = std::to_string(f.arity);
  text += "  b" + out + " = out f32 [unit]\n  %0 = load b0 : f32\n";
  if (f.arity == 2) text += "  %1 = load b1 : f32\n";
  text += "  %" + out + " = " + f.name + (f.arity == 2 ? " %0, %1" : " %0") + " : f32\n";
  text += "  store b" + out + ", %" + out + "\n";
  return kernel::parse(text);
}

// In units of the last place of a float of the exact value's magnitude; the denormals' unit below them.
double error_in_ulp(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  if (std::isnan(got)) return 1e9;
  if (std::isinf(exact) && exact == got) return 0;
  const int exponent = std::isinf(exact) ? 127 : std::max(std::ilogb(exact), -126);
  const double ulp = std::ldexp(1.0, std::min(exponent, 127) - 23);
  // An infinity stands for 2^128, a finite value where infinity is right is as far from it.
  const double g = std::isinf(got) ? std::copysign(0x1p128, got) : got;
  const double x = std::isinf(static_cast<float>(exact)) ? std::copysign(0x1p128, exact) : exact;
  return std::fabs(g - x) / ulp;
}

// What eager gives where the exact value is a denormal or zero and so may be missed.
bool is_eagers_value(const Function& f, float x, float got, double exact) {
  if (std::fabs(exact) >= std::numeric_limits<float>::min()) return false;
  return std::string(f.name) == "sigmoid" && got == 1.0f / (1.0f + static_cast<float>(std::exp(-double{x})));
}

struct Worst {
  double ulp = 0;
  float x = 0, y = 0, got = 0;
};

void look(const Function& f, const std::vector<float>& x, const std::vector<float>& y, const std::vector<float>& got,
          Worst& worst) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double exact = f.exact(x[i], f.arity == 2 ? y[i] : 0.0);
    const double e = error_in_ulp(got[i], exact);
    if (e > worst.ulp && !is_eagers_value(f, x[i], got[i], exact)) worst = {e, x[i], f.arity == 2 ? y[i] : 0, got[i]};
    if (exact == 0 && got[i] == 0 && std::signbit(exact) != std::signbit(got[i]) && worst.ulp < 1e6) {
      worst = {1e6, x[i], f.arity == 2 ? y[i] : 0, got[i]};  // the wrong zero
    }
  }
}

const float kSpecials[] = {0.0f,
                           -0.0f,
                           1,
                           -1,
                           2,
                           -2,
                           3,
                           -3,
                           0.5f,
                           -0.5f,
                           0.75f,
                           1.5f,
                           2.5f,
                           -2.5f,
                           10,
                           -10,
                           88,
                           89,
                           -87,
                           -88,
                           -103,
                           -104,
                           127,
                           128,
                           -126,
                           -127,
                           -149,
                           -150,
                           1e-30f,
                           -1e-30f,
                           1e30f,
                           -1e30f,
                           16777216,
                           16777218,
                           -16777215,
                           kInf,
                           -kInf,
                           std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::min(),
                           -std::numeric_limits<float>::min(),
                           std::numeric_limits<float>::denorm_min(),
                           -std::numeric_limits<float>::denorm_min(),
                           std::numeric_limits<float>::max(),
                           -std::numeric_limits<float>::max(),
                           88.72283f,
                           88.72284f,
                           -87.33654f,
                           -103.97207f,
                           0.99999994f,
                           1.0000001f};

class MathSweep : public testing::TestWithParam<Function> {};

// 2^32 / 251 = 17 million patterns: each exponent, each low mantissa bit.
TEST_P(MathSweep, WithinBudget) {
  const Function& f = GetParam();
  constexpr size_t kBatch = 1 << 16;
  constexpr uint32_t kStep = 251;
  std::vector<Compiled> kernels;
  for (const jit::CpuTarget* t : targets()) kernels.push_back(compile(kernel_of(f), *t));
  std::vector<Worst> worst(kernels.size());
  std::vector<float> x, y, got;
  uint32_t second = 1;
  auto flush = [&] {
    got.assign(x.size(), 0);
    for (size_t t = 0; t < kernels.size(); ++t) {
      std::vector<void*> pointers = {x.data(), got.data()};
      if (f.arity == 2) pointers = {x.data(), y.data(), got.data()};
      run(kernels[t], pointers, {static_cast<int64_t>(x.size())});
      look(f, x, y, got, worst[t]);
    }
    x.clear(), y.clear();
  };
  for (float s : kSpecials) {
    for (float r : kSpecials) {
      x.push_back(s), y.push_back(r);
    }
  }
  flush();
  for (uint64_t bits = 7; bits < (uint64_t{1} << 32); bits += kStep) {
    const float v = std::bit_cast<float>(static_cast<uint32_t>(bits));
    x.push_back(v);
    // A second operand that keeps results of pow finite for half of the samples.
    second = second * 1664525u + 1013904223u;
    const double scale =
        std::isfinite(v) && v != 0 ? 130 / std::max(1e-3, std::fabs(std::log2(std::fabs(double{v})))) : 10;
    y.push_back(static_cast<float>((static_cast<int32_t>(second) / 0x1p30) * scale));
    if (x.size() == kBatch) flush();
  }
  flush();
  for (size_t t = 0; t < kernels.size(); ++t) {
    std::printf("%-8s %-7s %.3f ulp at %a %a: %a\n", f.name, targets()[t]->name, worst[t].ulp, worst[t].x, worst[t].y,
                worst[t].got);
    EXPECT_LE(worst[t].ulp, f.budget) << f.name << " on " << targets()[t]->name << " at " << worst[t].x << ", "
                                      << worst[t].y << " gave " << worst[t].got << ", not "
                                      << f.exact(worst[t].x, worst[t].y);
  }
}

INSTANTIATE_TEST_SUITE_P(All, MathSweep, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fxjit::test
