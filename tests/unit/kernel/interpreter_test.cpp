#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernel/kernel.h"
#include "ops/value.h"

namespace fxjit::kernel {
namespace {

TEST(KernelInterpreter, RoundsHalfTypesAfterEachOperator) {
  const Kernel k = parse(
      "kernel\n axes parallel\n b0 = in f16 [unit]\n b1 = out f16 [unit]\n"
      " %0 = load b0 : f16\n %1 = add %0, %0 : f16\n %2 = sub %1, %0 : f16\n store b1, %2\n");
  const uint16_t x[] = {0x7bff, 0x3c00};  // the largest number, 1
  uint16_t y[2];
  void* pointers[] = {const_cast<uint16_t*>(x), y};
  const int64_t extent = 2, strides[] = {1, 1};
  interpret(k, pointers, &extent, strides, nullptr);
  EXPECT_EQ(y[0], 0x7c00) << "the sum overflows float16, though float32 would hold it";
  EXPECT_EQ(y[1], 0x3c00);
}

TEST(KernelInterpreter, IntegersWrapBeforeTheyWiden) {
  const Kernel k = parse(
      "kernel\n axes parallel\n b0 = in u8 [unit]\n b1 = in u8 [unit]\n b2 = out i32 [unit]\n"
      " %0 = load b0 : u8\n %1 = load b1 : u8\n %2 = add %0, %1 : u8\n %3 = cast %2 : i32\n %4 = const 1 : i32\n"
      " %5 = sub %3, %4 : i32\n store b2, %5\n");
  uint8_t a[] = {200, 130}, b[] = {100, 130};
  int32_t out[2];
  void* pointers[] = {a, b, out};
  const int64_t extent = 2, strides[] = {1, 1, 1};
  interpret(k, pointers, &extent, strides, nullptr);
  EXPECT_EQ(out[0], 43);
  EXPECT_EQ(out[1], 3);
}

TEST(KernelInterpreter, FollowsStridesAndBroadcasts) {
  const Kernel k = parse(
      "kernel\n axes parallel, parallel\n b0 = in f32 [unit, any]\n b1 = in f32 [zero, unit]\n b2 = out f32 [any, "
      "unit]\n"
      " s0 = i64\n %0 = load b0 : f32\n %1 = load b1 : f32\n %2 = add %0, %1 : f32\n %3 = scalar s0 : f32\n"
      " %4 = mul %2, %3 : f32\n store b2, %4\n");
  float a[] = {1, 2, 3, 4, 5, 6};  // 2 x 3, column by column
  float b[] = {10, 20, 30}, out[6];
  void* pointers[] = {a, b, out};
  const int64_t extents[] = {2, 3}, strides[] = {1, 2, 0, 1, 3, 1};
  const uint64_t scalar = 2;
  interpret(k, pointers, extents, strides, &scalar);
  const float expected[] = {22, 46, 70, 24, 48, 72};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

TEST(KernelInterpreter, ReducesRows) {
  const Kernel k = parse(
      "kernel\n axes parallel, reduction\n b0 = in f32 [any, unit]\n b1 = out f32 [any, unit]\n b2 = out f32 [unit, "
      "zero]\n"
      " %0 = load b0 : f32\n %1 = reduce max %0 : f32\n %2 = sub %0, %1 : f32\n %3 = exp %2 : f32\n"
      " %4 = reduce sum %3 : f32\n %5 = div %3, %4 : f32\n store b1, %5\n store b2, %4\n");
  float x[] = {1, 2, 3, 5, 5, 5, NAN, 1, 2};
  float y[9], sums[3];
  void* pointers[] = {x, y, sums};
  const int64_t extents[] = {3, 3}, strides[] = {3, 1, 3, 1, 1, 0};
  interpret(k, pointers, extents, strides, nullptr);
  EXPECT_NEAR(y[2], 0.66524096, 1e-7);
  EXPECT_EQ(y[3], y[5]);
  EXPECT_EQ(sums[1], 3);
  for (int i = 6; i < 9; ++i) EXPECT_TRUE(std::isnan(y[i])) << "NaN spreads over its row";
}

TEST(KernelInterpreter, ReductionsOfIntegersAndBool) {
  const Kernel k = parse(
      "kernel\n axes parallel, reduction\n b0 = in i64 [any, unit]\n b1 = out i64 [unit, zero]\n b2 = out i64 [unit, "
      "zero]\n"
      " b3 = out i64 [unit, zero]\n b4 = out bool [unit, zero]\n b5 = out bool [unit, zero]\n"
      " %0 = load b0 : i64\n %1 = reduce sum %0 : i64\n %2 = reduce prod %0 : i64\n %3 = reduce min %0 : i64\n"
      " %4 = cast %0 : bool\n %5 = reduce any %4 : bool\n %6 = reduce all %4 : bool\n"
      " store b1, %1\n store b2, %2\n store b3, %3\n store b4, %5\n store b5, %6\n");
  int64_t x[] = {INT64_MAX, 1, 3, 0, 0, 0}, sum[2], prod[2], least[2];
  bool any[2], all[2];
  void* pointers[] = {x, sum, prod, least, any, all};
  const int64_t extents[] = {2, 3};
  const int64_t strides[] = {3, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
  interpret(k, pointers, extents, strides, nullptr);
  EXPECT_EQ(sum[0], INT64_MIN + 3) << "sums wrap";
  EXPECT_EQ(prod[0], static_cast<int64_t>(static_cast<uint64_t>(INT64_MAX) * 3));
  EXPECT_EQ(least[0], 1);
  EXPECT_TRUE(any[0] && all[0]);
  EXPECT_FALSE(any[1] || all[1]);
}

TEST(KernelInterpreter, EmptySpacesAndRows) {
  const Kernel k = parse(
      "kernel\n axes parallel, reduction\n b0 = in f32 [any, unit]\n b1 = out f32 [unit, zero]\n"
      " %0 = load b0 : f32\n %1 = reduce sum %0 : f32\n %2 = extent a1 : f32\n %3 = div %1, %2 : f32\n store b1, %3\n");
  float y[2] = {7, 7};
  void* pointers[] = {nullptr, y};
  const int64_t strides[] = {1, 1, 1, 0}, no_rows[] = {0, 4}, no_elements[] = {2, 0};
  interpret(k, pointers, no_rows, strides, nullptr);
  EXPECT_EQ(y[0], 7);
  interpret(k, pointers, no_elements, strides, nullptr);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << "the mean of nothing";
}

}  // namespace
}  // namespace fxjit::kernel
