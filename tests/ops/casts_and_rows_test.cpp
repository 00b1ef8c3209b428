// Casts between all types, scalar arguments, and each reduction over rows of many lengths, compiled against
// interpreted.
#include <gtest/gtest.h>

#include "op_harness.h"
#include "support/format.h"

namespace fxjit::testing {
namespace {

using kernel::Kernel;
using ops::Value;

TEST(Casts, BetweenAllTypes) {
  for (DType from : kTypes) {
    std::vector<Value> set = ops::samples(ops::Samples::All, from);
    if (is_floating(from)) {
      for (double v : {1e10, -1e10, 3e9, 2147483648.0, -2147483648.0, -2147483649.0, 9223372036854775808.0, 300.7,
                       -129.2, 65519.0, 65520.0, 0x1p-25, 0x1.8p-24, 2049.0, 2051.0}) {
        set.push_back(ops::round_to(from, Value::of(v)));
      }
    }
    for (DType to : kTypes) {
      if (from == to) continue;
      const Kernel k = kernel::parse(support::concat(
          "kernel\n axes parallel\n b0 = in ", to_text(from), " [unit]\n b1 = out ", to_text(to),
          " [unit]\n %0 = load b0 : ", to_text(from), "\n %1 = cast %0 : ", to_text(to), "\n store b1, %1\n"));
      for (const std::string& target : kernel_targets()) {
        for (int64_t n : {1, 17, 33, 400}) ASSERT_EQ(compare(k, {{n}, {1, 1}}, {set}, {}, target), "");
      }
    }
  }
}

TEST(Scalars, AreConvertedToEachType) {
  for (DType t : kTypes) {
    if (t == DType::Bool) continue;
    const Kernel k =
        kernel::parse(support::concat("kernel\n axes parallel\n b0 = out ", to_text(t), " [unit]\n b1 = out ",
                                      to_text(t), " [unit]\n s0 = f64\n s1 = i64\n %0 = scalar s0 : ", to_text(t),
                                      "\n %1 = scalar s1 : ", to_text(t), "\n store b0, %0\n store b1, %1\n"));
    for (const std::string& target : kernel_targets()) {
      for (double v : {0.1, -3.75, 1e300, 65519.9, 0x1.001p0, 0x1.0020000001p0}) {
        for (int64_t i : {int64_t{300}, int64_t{-1}, int64_t{16777217}, int64_t{9007199254740993}}) {
          const Shape shape{{5}, {1, 1}, {Value::of(v).bits, Value::of(i).bits}};
          ASSERT_EQ(compare(k, shape, {}, {}, target), "");
        }
      }
    }
  }
}

struct Reduction {
  const char* name;
  DType type;
};

class EveryReduction : public ::testing::TestWithParam<Reduction> {};

std::vector<Value> reduction_samples(const Reduction& r) {
  if (!is_floating(r.type)) return ops::samples(ops::Samples::All, r.type);
  std::vector<Value> out;
  const bool product = std::string(r.name) == "prod";
  for (int i = 0; i < 97; ++i) {
    const double v = product ? 0.97 + 0.0006 * i : (i * 37 % 97) / 8.0 - 5;
    out.push_back(ops::round_to(r.type, Value::of(v)));
  }
  return out;
}

TEST_P(EveryReduction, RowsOfManyLengths) {
  const auto [name, type] = GetParam();
  const char* t = to_text(type);
  const Kernel k = kernel::parse(support::concat("kernel\n axes parallel, reduction\n b0 = in ", t,
                                                 " [any, unit]\n b1 = out ", t, " [unit, zero]\n %0 = load b0 : ", t,
                                                 "\n %1 = reduce ", name, " %0 : ", t, "\n store b1, %1\n"));
  // Order of summation: a few roundings of the largest partial sum, which is below 8 * n here.
  const bool inexact = is_floating(type) && (std::string(name) == "sum" || std::string(name) == "prod");
  const double eps = type == DType::Float32 ? 0x1p-23 : 0x1p-52;
  for (const std::string& target : kernel_targets()) {
    for (int64_t n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 129, 1000, 4099}) {
      Tolerance allowed;
      if (inexact) allowed = {4, 0, 8.0 * static_cast<double>(n) * eps};
      ASSERT_EQ(compare(k, {{3, n}, {n + 1, 1, 1, 0}}, {reduction_samples(GetParam())}, allowed, target), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, EveryReduction,
    ::testing::Values(Reduction{"sum", DType::Float32}, Reduction{"sum", DType::Float64},
                      Reduction{"sum", DType::Int64}, Reduction{"sum", DType::Int32}, Reduction{"prod", DType::Float32},
                      Reduction{"prod", DType::Float64}, Reduction{"prod", DType::Int64},
                      Reduction{"max", DType::Float32}, Reduction{"max", DType::Float64},
                      Reduction{"max", DType::Int64}, Reduction{"max", DType::UInt8}, Reduction{"min", DType::Float32},
                      Reduction{"min", DType::Int8}, Reduction{"min", DType::Int16}, Reduction{"min", DType::Float64},
                      Reduction{"any", DType::Bool}, Reduction{"all", DType::Bool}),
    [](const auto& info) { return support::concat(info.param.name, "_", to_text(info.param.type)); });

// NaN anywhere in a row makes its maximum NaN, at each position of a vector and of a tail.
TEST(Reductions, MaximumPropagatesNaN) {
  const Kernel k = kernel::parse(
      "kernel\n axes parallel, reduction\n b0 = in f32 [any, unit]\n b1 = out f32 [unit, zero]\n %0 = load b0 : f32\n"
      " %1 = reduce max %0 : f32\n store b1, %1\n");
  for (const std::string& target : kernel_targets()) {
    for (size_t at = 0; at < 70; ++at) {
      std::vector<Value> row(70, Value::of(1.0));
      row[at] = Value::of(std::numeric_limits<double>::quiet_NaN());
      ASSERT_EQ(compare(k, {{1, 70}, {70, 1, 1, 0}}, {row}, {}, target), "");
    }
  }
}

// A value that two reductions of the row read, and results per row and per element.
TEST(Reductions, ChainOverARow) {
  const Kernel k = kernel::parse(
      "kernel\n axes parallel, reduction\n b0 = in f16 [any, unit]\n b1 = in f32 [zero, unit]\n b2 = out f16 [any, "
      "unit]\n"
      " b3 = out f32 [unit, zero]\n s0 = f64\n %0 = load b0 : f16\n %1 = cast %0 : f32\n %2 = reduce sum %1 : f32\n"
      " %3 = extent a1 : f32\n %4 = div %2, %3 : f32\n %5 = sub %1, %4 : f32\n %6 = mul %5, %5 : f32\n"
      " %7 = reduce sum %6 : f32\n %8 = div %7, %3 : f32\n %9 = scalar s0 : f32\n %10 = add %8, %9 : f32\n"
      " %11 = rsqrt %10 : f32\n %12 = mul %5, %11 : f32\n %13 = load b1 : f32\n %14 = mul %12, %13 : f32\n"
      " %15 = cast %14 : f16\n store b2, %15\n store b3, %11\n");
  const Reduction values{"sum", DType::Float16};
  const std::vector<std::vector<Value>> sets = {reduction_samples(values), reduction_samples({"sum", DType::Float32})};
  for (const std::string& target : kernel_targets()) {
    for (int64_t n : {1, 7, 16, 50, 384, 1000}) {
      const Shape shape{{4, n}, {n, 1, 0, 1, n, 1, 1, 0}, {Value::of(1e-5).bits}};
      ASSERT_EQ(compare(k, shape, sets, {4, 0x1p-9, 1e-5}, target), "");
    }
  }
}

}  // namespace
}  // namespace fxjit::testing
