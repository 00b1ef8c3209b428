#include "ops/value.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "fxjit/errors.h"
#include "table_data.h"

namespace fxjit::ops {
namespace {

TEST(Half, EveryFloat16ReadsAsTheCompilersDoes) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t h = static_cast<uint16_t>(bits);
    _Float16 expected;
    std::memcpy(&expected, &h, 2);
    const float got = half_to_float(h), want = static_cast<float>(expected);
    ASSERT_TRUE(std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(want) || (got != got && want != want)) << bits;
    ASSERT_TRUE(got != got || float_to_half(got) == h) << "a float16 survives the way there and back";
  }
}

TEST(Half, FloatsRoundAsTheCompilersDo) {
  // All exponents, with significands around every kind of tie.
  for (uint32_t exponent = 90; exponent < 160; ++exponent) {
    for (uint32_t mantissa :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu, 0x2000u, 0x3000u, 0x7fefffu, 0x7ff000u, 0x7fffffu}) {
      for (uint32_t sign : {0u, 0x80000000u}) {
        const float v = std::bit_cast<float>(sign | exponent << 23 | mantissa);
        const _Float16 expected = static_cast<_Float16>(v);
        uint16_t want;
        std::memcpy(&want, &expected, 2);
        ASSERT_EQ(float_to_half(v), want) << v;
      }
    }
  }
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(NAN))));
}

TEST(Half, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(float_to_bfloat(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bfloat(0x1.01p0f), 0x3f80) << "a tie goes to the even neighbour below";
  EXPECT_EQ(float_to_bfloat(0x1.03p0f), 0x3f82) << "and above";
  EXPECT_EQ(float_to_bfloat(0x1.010002p0f), 0x3f81);
  EXPECT_EQ(float_to_bfloat(0x1p-133f), 0x0001) << "subnormal numbers are kept";
  EXPECT_EQ(float_to_bfloat(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Cast, AgreesWithEager) {
  for (const std::string& line : testing::read_table("casts.txt")) {
    const auto w = testing::words(line);
    const DType from = testing::dtype_of(w[0]), to = testing::dtype_of(w[2]);
    const Value got = cast(from, to, testing::element_of(from, w[1])), want = testing::element_of(to, w[4]);
    EXPECT_TRUE(testing::same_value(to, got, want)) << line << ", got " << testing::show(to, got);
  }
}

TEST(Value, StoresWhatItLoads) {
  for (DType t : {DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64, DType::Bool, DType::Float16,
                  DType::BFloat16, DType::Float32, DType::Float64}) {
    const Value v = cast(DType::Float64, t, Value::of(1.0));
    uint64_t memory = 0;
    store(t, &memory, v);
    EXPECT_EQ(load(t, &memory), v) << to_text(t);
  }
}

// Rows whose value eager computes with functions of its own: how far ours may be from it, in units of the last place
// of the result, or of float32 at the size of the first operand.
struct Tolerance {
  double ulps = 0, relative_to_operand = 0;
};

Tolerance tolerance_of(const OpRow& row, DType t) {
  const bool exact = row.domain & bit(DType::Float64);
  if (row.id == OpId::sqrt) return {1, 0};  // eager's float32 root is not correctly rounded
  if (exact || !(row.domain & bit(DType::Float32))) return {};
  if (is_half(t)) return {1, 0x1p-22};
  return {4, row.id == OpId::gelu || row.id == OpId::gelu_tanh || row.id == OpId::silu ? 0x1p-22 : 0};
}

double ulp(DType t, double v) {
  const int bits = t == DType::Float16 ? 11 : t == DType::BFloat16 ? 8 : t == DType::Float32 ? 24 : 53;
  return v == 0 ? 0x1p-149 : std::exp2(std::floor(std::log2(std::fabs(v))) - (bits - 1));
}

bool near(const OpRow& row, DType t, Value got, Value want, double operand) {
  if (testing::same_value(t, got, want)) return true;
  if (!is_floating(t)) return false;
  const double a = got.f(), b = want.f();
  const bool zeros_alike = row.id == OpId::minimum || row.id == OpId::maximum || row.id == OpId::clamp;
  if (a == 0 && b == 0) return zeros_alike;  // of two zeros eager's vector code and its tail take different ones
  const Tolerance allowed = tolerance_of(row, t);
  return std::isfinite(a) && std::isfinite(b) &&
         std::fabs(a - b) <= allowed.ulps * ulp(t, b) + allowed.relative_to_operand * std::fabs(operand);
}

TEST(Reference, AgreesWithEager) {
  std::vector<bool> seen(kOpCount);
  for (const std::string& line : testing::read_table("values.txt")) {
    const auto w = testing::words(line);
    const OpRow* row = find_name(w[0]);
    ASSERT_NE(row, nullptr) << line;
    seen[static_cast<size_t>(row->id)] = true;
    const DType t = testing::dtype_of(w[1]), result = returns_bool(row->promote) ? DType::Bool : t;
    Value x[3] = {};
    for (int i = 0; i < row->arity; ++i) x[i] = testing::element_of(t, w[2 + static_cast<size_t>(i)]);
    const Value got = apply(row->id, t, x[0], x[1], x[2]);
    EXPECT_TRUE(near(*row, result, got, testing::element_of(result, w.back()), is_floating(t) ? x[0].f() : 0))
        << line << ", got " << testing::show(result, got) << ", eager "
        << testing::show(result, testing::element_of(result, w.back()));
  }
  for (const OpRow& row : rows()) {
    EXPECT_TRUE(seen[static_cast<size_t>(row.id)] || row.id == OpId::where) << row.name << " is not in the table";
  }
}

TEST(Reference, WhereChoosesByTheCondition) {
  const Value a = Value::of(2.5), b = Value::of(-1.0);
  EXPECT_EQ(apply(OpId::where, DType::Float16, Value::of(int64_t{1}), a, b), a);
  EXPECT_EQ(apply(OpId::where, DType::Float16, Value::of(int64_t{0}), a, b), b);
}

TEST(Reference, RefusesTypesOutsideTheDomain) {
  EXPECT_FALSE(has_reference(OpId::exp, DType::Int32));
  EXPECT_TRUE(has_reference(OpId::exp, DType::Float64)) << "the interpreter computes what kernels leave to ATen";
  EXPECT_THROW(apply(OpId::exp, DType::Int32, {}), InternalError);
}

}  // namespace
}  // namespace fxjit::ops
