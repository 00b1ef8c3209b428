#include "ops/promote.h"

#include <gtest/gtest.h>

#include "table_data.h"

namespace fxjit::ops {
namespace {

using Operand = OperandType;

Operand operand(const std::string& category, const std::string& dtype) {
  const auto c = category == "tensor" ? Operand::Tensor : category == "zerodim" ? Operand::ZeroDim : Operand::Wrapped;
  return {c, testing::dtype_of(dtype)};
}

TEST(Promote, AgreesWithEagerOnAllPairs) {
  int count = 0;
  for (const std::string& line : testing::read_table("promotion.txt")) {
    const auto w = testing::words(line);
    const Operand pair[] = {operand(w[0], w[1]), operand(w[2], w[3])};
    EXPECT_STREQ(to_text(result_type(pair)), w[5].c_str()) << line;
    ++count;
  }
  EXPECT_GT(count, 700);
}

TEST(Promote, DefaultFloatIsTheCallers) {
  const Operand operands[] = {{Operand::Tensor, DType::Int32}, {Operand::Wrapped, DType::Float64}};
  EXPECT_EQ(result_type(operands), DType::Float32);
  EXPECT_EQ(result_type(operands, DType::Float64), DType::Float64);
}

TEST(Promote, ThreeOperandsKeepTheCategoriesApart) {
  // A tensor decides against any 0-dim tensor and number of its kind.
  const Operand operands[] = {
      {Operand::Tensor, DType::Float16}, {Operand::ZeroDim, DType::Float64}, {Operand::Wrapped, DType::Float64}};
  EXPECT_EQ(result_type(operands), DType::Float16);
  const Operand integers[] = {
      {Operand::Tensor, DType::Int8}, {Operand::ZeroDim, DType::Float16}, {Operand::Wrapped, DType::Float64}};
  EXPECT_EQ(result_type(integers), DType::Float16);
}

TEST(Promote, Rules) {
  const Operand ints[] = {{Operand::Tensor, DType::Int32}, {Operand::Tensor, DType::Bool}};
  EXPECT_EQ(promote(Promote::Same, ints).result, DType::Int32);
  EXPECT_EQ(promote(Promote::Float, ints).compute, DType::Float32);
  EXPECT_EQ(promote(Promote::Compare, ints).compute, DType::Int32);
  EXPECT_EQ(promote(Promote::Compare, ints).result, DType::Bool);
  EXPECT_EQ(promote(Promote::Logical, ints).compute, DType::Bool);
  const Operand half[] = {{Operand::Tensor, DType::BFloat16}};
  EXPECT_EQ(promote(Promote::Float, half).result, DType::BFloat16);
}

}  // namespace
}  // namespace fxjit::ops
