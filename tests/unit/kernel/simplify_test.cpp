#include "kernel/simplify.h"

#include <gtest/gtest.h>

namespace fxjit::kernel {
namespace {

// The body of a kernel from one f32 input to one output after simplification, without head and indentation.
std::string simplified(const std::string& body, const std::string& type = "f32") {
  Kernel k =
      parse("kernel\n axes parallel\n b0 = in " + type + " [unit]\n b1 = out " + type + " [unit]\n s0 = f64\n" + body);
  verify(k);
  simplify(k);
  verify(k);
  std::string out, text = print(k);
  for (size_t at = text.find("  %"); at != text.npos && at < text.size();) {
    size_t end = text.find('\n', at);
    out += text.substr(at + 2, end - at - 2) + "\n";
    at = end + 1;
  }
  return out;
}

TEST(Simplify, EqualExpressionsBecomeOne) {
  EXPECT_EQ(simplified("%0 = load b0 : f32\n%1 = load b0 : f32\n%2 = exp %0 : f32\n%3 = exp %1 : f32\n"
                       "%4 = add %2, %3 : f32\nstore b1, %4"),
            "%0 = load b0 : f32\n%1 = exp %0 : f32\n%2 = add %1, %1 : f32\nstore b1, %2\n");
}

TEST(Simplify, CastsThatChangeNothingGo) {
  EXPECT_EQ(simplified("%0 = load b0 : f16\n%1 = cast %0 : f32\n%2 = cast %1 : f16\nstore b1, %2", "f16"),
            "%0 = load b0 : f16\nstore b1, %0\n");
  EXPECT_EQ(simplified("%0 = load b0 : f16\n%1 = cast %0 : f32\n%2 = cast %1 : f64\n%3 = sqrt %2 : f64\n"
                       "%4 = cast %3 : f16\nstore b1, %4",
                       "f16"),
            "%0 = load b0 : f16\n%1 = cast %0 : f64\n%2 = sqrt %1 : f64\n%3 = cast %2 : f16\nstore b1, %3\n");
}

TEST(Simplify, CastsThatRoundStay) {
  const std::string body = "%0 = load b0 : f32\n%1 = cast %0 : f16\n%2 = cast %1 : f32\nstore b1, %2\n";
  EXPECT_EQ(simplified(body), body) << "an explicit cast is a rounding step";
  EXPECT_FALSE(is_exact_cast(DType::Int32, DType::Float32));
  EXPECT_TRUE(is_exact_cast(DType::Int32, DType::Float64));
  EXPECT_TRUE(is_exact_cast(DType::UInt8, DType::BFloat16));
  EXPECT_FALSE(is_exact_cast(DType::Int8, DType::UInt8));
  EXPECT_FALSE(is_exact_cast(DType::Float16, DType::BFloat16));
  EXPECT_FALSE(is_exact_cast(DType::BFloat16, DType::Float16));
  EXPECT_FALSE(is_exact_cast(DType::Int64, DType::Float64));
}

TEST(Simplify, ConstantsFoldWhereThatIsExact) {
  EXPECT_EQ(simplified("%0 = load b0 : f32\n%1 = const 2 : f32\n%2 = const 0.5 : f32\n%3 = add %1, %2 : f32\n"
                       "%4 = mul %0, %3 : f32\nstore b1, %4"),
            "%0 = load b0 : f32\n%1 = const 2.5 : f32\n%2 = mul %0, %1 : f32\nstore b1, %2\n");
  const std::string exp = "%0 = const 2 : f32\n%1 = exp %0 : f32\n";
  EXPECT_EQ(simplified(exp + "store b1, %1"), exp + "store b0, %1\n")
      << "the emitted function may differ in the last bit";
}

TEST(Simplify, OnlyIdentitiesThatKeepEveryBit) {
  EXPECT_EQ(simplified("%0 = load b0 : f32\n%1 = const 1 : f32\n%2 = mul %0, %1 : f32\n%3 = div %2, %1 : f32\n"
                       "%4 = mul %1, %3 : f32\nstore b1, %4"),
            "%0 = load b0 : f32\nstore b1, %0\n");
  const std::string sum = "%0 = load b0 : f32\n%1 = const 0 : f32\n%2 = add %0, %1 : f32\nstore b1, %2\n";
  EXPECT_EQ(simplified(sum), sum) << "-0 + 0 is 0";
}

TEST(Simplify, WhatNobodyNeedsGoes) {
  Kernel k = parse(
      "kernel\n axes parallel\n b0 = in f32 [unit]\n b1 = in f32 [unit]\n b2 = out f32 [unit]\n s0 = f64\n s1 = f64\n"
      " %0 = load b0 : f32\n %1 = load b1 : f32\n %2 = scalar s0 : f32\n %3 = scalar s1 : f32\n %4 = mul %0, %2 : f32\n"
      " %5 = mul %1, %3 : f32\n store b2, %5\n");
  const Kept kept = simplify(k);
  verify(k);
  EXPECT_EQ(kept.buffers, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(kept.scalars, (std::vector<int32_t>{1}));
  EXPECT_EQ(k.exprs.size(), 3u);
  EXPECT_EQ(k.stores[0].buffer, 1);
}

TEST(Simplify, DistinctScalarsStayDistinct) {
  const std::string body = "%0 = load b0 : f32\n%1 = scalar s0 : f32\n%2 = mul %0, %1 : f32\nstore b1, %2\n";
  EXPECT_EQ(simplified(body), body);
}

}  // namespace
}  // namespace fxjit::kernel
