// Row kernels: every reduction, in passes, over rows of all lengths; and what only rows have: scratch, cascades, NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "memory.h"

namespace fxjit::test {
namespace {

constexpr int64_t kLengths[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 384, 1000, 4096, 4097, 8192, 20011};

std::string reduction_of(const std::string& op, const std::string& t, const std::string& inner) {
  return "kernel\n  axes parallel, reduction\n  b0 = in " + t + " [any, " + inner + "]\n  b1 = out " + t +
         " [unit, zero]\n  %0 = load b0 : " + t + "\n  %1 = reduce " + op + " %0 : " + t + "\n  store b1, %1\n";
}

// `rest` makes the stored value of %5, the softmax of %0.
std::string softmax_and(const std::string& out, const std::string& rest) {
  return "kernel\n  axes parallel, reduction\n  b0 = in f32 [any, unit]\n  b1 = out " + out + R"( [any, unit]
  %0 = load b0 : f32
  %1 = reduce max %0 : f32
  %2 = sub %0, %1 : f32
  %3 = exp %2 : f32
  %4 = reduce sum %3 : f32
  %5 = div %3, %4 : f32
)" + rest;
}

const std::string kSoftmax = softmax_and("f32", "  store b1, %5\n");
const std::string kWeighted = softmax_and("f32", "  %6 = mul %5, %0 : f32\n  store b1, %6\n");  // by its input
const std::string kHalfSoftmax = softmax_and("f16", "  %6 = cast %5 : f16\n  store b1, %6\n");

// Half input and output, weights along the row, mean and 1/deviation stored too.
constexpr const char* kLayerNorm = R"(kernel
  axes parallel, reduction
  b0 = in f16 [any, unit]
  b1 = in f32 [zero, unit]
  b2 = in f32 [zero, unit]
  b3 = out f16 [any, unit]
  b4 = out f32 [unit, zero]
  b5 = out f32 [unit, zero]
  s0 = f64
  %0 = load b0 : f16
  %1 = cast %0 : f32
  %2 = reduce sum %1 : f32
  %3 = extent a1 : f32
  %4 = div %2, %3 : f32
  %5 = sub %1, %4 : f32
  %6 = mul %5, %5 : f32
  %7 = reduce sum %6 : f32
  %8 = div %7, %3 : f32
  %9 = scalar s0 : f32
  %10 = add %8, %9 : f32
  %11 = rsqrt %10 : f32
  %12 = mul %5, %11 : f32
  %13 = load b1 : f32
  %14 = mul %12, %13 : f32
  %15 = load b2 : f32
  %16 = add %14, %15 : f32
  %17 = cast %16 : f16
  store b3, %17
  store b4, %4
  store b5, %11
)";

// Two reductions in one pass, one of an expensive value that a later pass needs as well, and results of each kind.
constexpr const char* kMixed = R"(kernel
  axes parallel, reduction
  b0 = in f32 [any, any]
  b1 = in bf16 [any, unit]
  b2 = out f32 [any, unit]
  b3 = out f32 [unit, zero]
  b4 = out bool [unit, zero]
  %0 = load b0 : f32
  %1 = load b1 : bf16
  %2 = cast %1 : f32
  %3 = sigmoid %0 : f32
  %4 = mul %3, %2 : f32
  %5 = reduce sum %4 : f32
  %6 = reduce max %2 : f32
  %7 = sub %4, %5 : f32
  %8 = add %7, %6 : f32
  %9 = const 0 : f32
  %10 = gt %8, %9 : bool
  %11 = reduce any %10 : bool
  store b2, %8
  store b3, %6
  store b4, %11
)";

void check(const kernel::Kernel& k, const std::vector<int64_t>& lengths, const Same& same, int64_t rows = 3,
           const std::vector<uint64_t>& scalars = {}) {
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    for (int64_t n : lengths) {
      const std::string what = std::string(target->name) + " n=" + std::to_string(n);
      expect_agreement(make_problem(k, {rows, n}, scalars, n % 3), compiled, same, 1 + n % 2, what);
    }
  }
}

const std::vector<int64_t> kAll(std::begin(kLengths), std::end(kLengths));

TEST(Rows, IntegerReductionsAreExact) {
  for (const char* t : {"i64", "i32", "i16", "i8", "u8"}) {
    for (const char* op : {"sum", "prod", "max", "min"}) {
      for (const char* inner : {"unit", "any"}) check(kernel::parse(reduction_of(op, t, inner)), kAll, equal);
    }
  }
  for (const char* op : {"any", "all"}) check(kernel::parse(reduction_of(op, "bool", "unit")), kAll, equal);
}

TEST(Rows, FloatingReductions) {
  for (const char* t : {"f32", "f64"}) {
    const double eps = t[1] == '3' ? 0x1p-24 : 0x1p-53;
    for (const char* inner : {"unit", "any"}) {
      for (const char* op : {"max", "min"}) {
        check(kernel::parse(reduction_of(op, t, inner)), {1, 2, 17, 64, 65, 1000, 5000}, equal);
      }
      // Terms up to 4 in magnitude: an absolute bound of a few eps of their sum of magnitudes.
      for (int64_t n : kLengths) {
        check(kernel::parse(reduction_of("sum", t, inner)), {n}, within(0, 16 * eps * static_cast<double>(n + 1)));
      }
      check(kernel::parse(reduction_of("prod", t, inner)), {0, 1, 2, 17, 64, 65, 100}, within(128 * eps, 0));
    }
  }
}

// All ones and one third: a plain running sum of 2^24 thirds in float is off by 2^-9 of it.
TEST(Rows, LongSumsStayAccurate) {
  const kernel::Kernel k = kernel::parse(reduction_of("sum", "f32", "unit"));
  const int64_t n = (int64_t{1} << 24) + 5;
  const std::vector<float> x(n, 1.0f / 3);
  for (const jit::CpuTarget* target : targets()) {
    float sum = 0;
    run(compile(k, *target), {const_cast<float*>(x.data()), &sum}, {1, n}, {n, 1, 1, 0});
    const double exact = double{x[0]} * n;
    EXPECT_LE(std::fabs(sum - exact) / exact, 8 * 0x1p-24) << target->name;
  }
}

TEST(Rows, InfinitiesSurviveTheCascade) {
  const kernel::Kernel k = kernel::parse(reduction_of("sum", "f32", "unit"));
  const int64_t n = 20000;
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    for (int64_t at : {0, 5000, 19999}) {
      std::vector<float> x(n, 1.0f);
      float sum = 0;
      x[at] = INFINITY;
      run(compiled, {x.data(), &sum}, {1, n}, {n, 1, 1, 0});
      EXPECT_EQ(sum, INFINITY) << at;
      x[n - 1 - at] = -INFINITY;
      run(compiled, {x.data(), &sum}, {1, n}, {n, 1, 1, 0});
      EXPECT_TRUE(std::isnan(sum)) << at;
    }
  }
}

// The second goes by fused multiply-additions, for the sake of the other unit.
TEST(Rows, TwoSumsOfOnePassRoundAlike) {
  const kernel::Kernel k = kernel::parse(R"(kernel
  axes parallel, reduction
  b0 = in f32 [any, unit]
  b1 = in f32 [any, unit]
  b2 = out f32 [unit, zero]
  b3 = out f32 [unit, zero]
  %0 = load b0 : f32
  %1 = load b1 : f32
  %2 = reduce sum %0 : f32
  %3 = reduce sum %1 : f32
  store b2, %2
  store b3, %3
)");
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    EXPECT_NE(emit_text(k, *target, compiled.schedule).find("llvm.fma"), std::string::npos);
    for (int64_t n : {1, 15, 16, 31, 33, 768, 5000}) {
      std::vector<float> x(n);
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(std::sin(i) * std::exp(i % 40 - 20));
      float sums[2] = {};
      for (float special : {x[n / 2], -0.0f, INFINITY, 3e38f}) {
        x[n / 2] = special;
        run(compiled, {x.data(), x.data(), &sums[0], &sums[1]}, {1, n}, {n, 1, n, 1, 1, 0, 1, 0});
        EXPECT_EQ(std::bit_cast<uint32_t>(sums[0]), std::bit_cast<uint32_t>(sums[1])) << n << ' ' << target->name;
      }
    }
  }
}

TEST(Rows, MaxAndMinPropagateNaNFromAnywhere) {
  for (const char* op : {"max", "min"}) {
    const kernel::Kernel k = kernel::parse(reduction_of(op, "f32", "unit"));
    for (const jit::CpuTarget* target : targets()) {
      const Compiled compiled = compile(k, *target);
      const int64_t n = 150;
      for (int64_t at = 0; at < n; ++at) {
        std::vector<float> x(n, op[1] == 'a' ? -INFINITY : INFINITY);
        float result = 0;
        run(compiled, {x.data(), &result}, {1, n}, {n, 1, 1, 0});
        EXPECT_EQ(result, x[0]);
        x[at] = NAN;
        run(compiled, {x.data(), &result}, {1, n}, {n, 1, 1, 0});
        EXPECT_TRUE(std::isnan(result)) << op << " NaN at " << at << " on " << target->name;
      }
    }
  }
}

TEST(Rows, Softmax) { check(kernel::parse(kSoftmax), kAll, within(2e-6, 1e-10)); }

TEST(Rows, LayerNorm) {
  const uint64_t epsilon = std::bit_cast<uint64_t>(1e-5);
  // From two elements on: the deviation of one is zero up to rounding, and what is made of it is not compared.
  check(kernel::parse(kLayerNorm), {2, 15, 16, 17, 64, 65, 768, 1000, 5000}, within(2e-5, 4e-4), 4, {epsilon});
}

TEST(Rows, SeveralPassesAndResults) {
  // Bools follow from comparisons of values with errors: with data of either sign they are true in both.
  check(kernel::parse(kMixed), {16, 17, 100, 5000}, within(1e-4, 1e-4), 2);
}

TEST(Rows, OneRowWithoutOuterAxes) {
  const kernel::Kernel k = kernel::parse(R"(kernel
  axes reduction
  b0 = in i64 [unit]
  b1 = out i64 [zero]
  %0 = load b0 : i64
  %1 = reduce sum %0 : i64
  store b1, %1
)");
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    for (int64_t n : kLengths) expect_agreement(make_problem(k, {n}), compiled);
  }
}

// Bit for bit, however the rows are split among calls.
TEST(Rows, SplitsDoNotMatter) {
  const kernel::Kernel k = kernel::parse(kSoftmax);
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    Problem p = make_problem(k, {13, 5000});
    Block whole = p.blocks[1], parts = p.blocks[1];
    run(compiled, {p.blocks[0].data(), whole.data()}, p.extents, p.strides, {}, 1);
    run(compiled, {p.blocks[0].data(), parts.data()}, p.extents, p.strides, {}, 5);
    EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size), 0);
  }
}

// The memory of an input may be an output's; the second kernel reads its input again in the last pass.
TEST(Rows, InPlace) {
  for (const std::string& text : {kSoftmax, kWeighted}) {
    const kernel::Kernel k = kernel::parse(text);
    for (const jit::CpuTarget* target : targets()) {
      const Compiled compiled = compile(k, *target);
      Problem p = make_problem(k, {4, 777}, {}, 0, 1);
      Block apart = p.blocks[1], same = p.blocks[0];
      run(compiled, {p.blocks[0].data(), apart.data()}, p.extents, p.strides);
      run(compiled, {same.data(), same.data()}, p.extents, p.strides);
      EXPECT_EQ(std::memcmp(same.data(), apart.data(), same.size), 0) << text;
    }
  }
}

// An exponential that two passes need is kept: in the output's row, unless its input is read again, the output has
// another type or is written past the caches.
TEST(Rows, ExpensiveValuesAreKept) {
  const jit::CpuTarget& target = jit::avx512_target();
  auto uses_scratch = [&](std::string text, bool nontemporal = false) {
    const kernel::Kernel k = kernel::parse(text);
    codegen::Schedule schedule = default_schedule(k, target);
    schedule.nontemporal = nontemporal;
    return emit_text(k, target, schedule).find("fxjit_scratch") != std::string::npos;
  };
  EXPECT_FALSE(uses_scratch(kSoftmax));
  EXPECT_FALSE(uses_scratch(kLayerNorm));
  EXPECT_TRUE(uses_scratch(kWeighted));
  EXPECT_TRUE(uses_scratch(kHalfSoftmax));
  EXPECT_TRUE(uses_scratch(kSoftmax, true));
}

// The extent says more than there is: the kernel returns before it touches anything.
TEST(Rows, WithoutMemoryForScratchTheLaunchSaysSo) {
  const kernel::Kernel k = kernel::parse(kWeighted);
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    const int64_t extents[] = {3, int64_t{1} << 58}, strides[] = {0, 1, 0, 1};
    void* const pointers[] = {nullptr, nullptr};
    fxjit_launch launch{pointers, extents, strides, nullptr, 1, FXJIT_OK};
    compiled.function(0, 3, &launch);
    EXPECT_EQ(launch.status, FXJIT_NO_MEMORY) << target->name;
  }
}

TEST(Rows, KeptInScratch) {
  check(kernel::parse(kWeighted), kAll, within(2e-6, 1e-10));
  check(kernel::parse(kHalfSoftmax), kAll, within(1e-3, 1e-6));
}

}  // namespace
}  // namespace fxjit::test
