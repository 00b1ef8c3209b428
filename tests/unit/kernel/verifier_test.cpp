// Planted faults: each is found, and the message names the rule.
#include <gtest/gtest.h>

#include "fxjit/errors.h"
#include "kernel/kernel.h"

namespace fxjit::kernel {
namespace {

Kernel row_kernel() {
  return parse(
      "kernel\n axes parallel, reduction\n b0 = in f32 [any, unit]\n b1 = out f32 [any, unit]\n b2 = out f32 [unit, "
      "zero]\n"
      " s0 = f64\n %0 = load b0 : f32\n %1 = scalar s0 : f32\n %2 = mul %0, %1 : f32\n %3 = reduce max %2 : f32\n"
      " %4 = sub %2, %3 : f32\n %5 = gt %4, %3 : bool\n %6 = where %5, %4, %0 : f32\n store b1, %6\n store b2, %3\n");
}

void expect_fault(const std::string& rule, void (*plant)(Kernel&)) {
  Kernel k = row_kernel();
  verify(k);
  plant(k);
  try {
    verify(k);
    FAIL() << "not found: " << rule;
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find(rule), std::string::npos) << e.what();
  }
}

TEST(KernelVerifier, FindsPlantedFaultsOfAxesAndBuffers) {
  expect_fault("at least one axis", [](Kernel& k) { k.axes.clear(); });
  expect_fault("only the last axis", [](Kernel& k) { k.axes[0].reduction = true; });
  expect_fault("one stride class per axis", [](Kernel& k) { k.buffers[0].strides.pop_back(); });
  expect_fault("moves along every parallel axis", [](Kernel& k) { k.buffers[1].strides[0] = StrideClass::Zero; });
  expect_fault("complex elements", [](Kernel& k) { k.buffers[0].dtype = DType::Complex64; });
  expect_fault("f64 or i64", [](Kernel& k) { k.scalars[0] = DType::Float32; });
}

TEST(KernelVerifier, FindsPlantedFaultsOfExpressions) {
  expect_fault("an earlier expression", [](Kernel& k) { k.exprs[2].args[1] = 2; });
  expect_fault("an earlier expression", [](Kernel& k) { k.exprs[2].args[0] = -1; });
  expect_fault("no more operands", [](Kernel& k) { k.exprs[2].args[2] = 0; });
  expect_fault("there is no such buffer", [](Kernel& k) { k.exprs[0].index = 9; });
  expect_fault("an output is not read", [](Kernel& k) { k.exprs[0].index = 1; });
  expect_fault("its buffer's element type", [](Kernel& k) { k.buffers[0].dtype = DType::Float64; });
  expect_fault("there is no such scalar", [](Kernel& k) { k.exprs[1].index = 1; });
  expect_fault("the index is that", [](Kernel& k) { k.exprs[1].index = -1; });
  expect_fault("operands are of one type", [](Kernel& k) { k.exprs[1].dtype = DType::Float64; });
  expect_fault("the result has the wrong type", [](Kernel& k) { k.exprs[5].dtype = DType::Float32; });
  expect_fault("the condition is bool", [](Kernel& k) { k.exprs[6].args[0] = 4; });
  expect_fault("no code for this type", [](Kernel& k) { k.exprs[2].op = ops::OpId::bitwise_and; });
  expect_fault("only constants have bits", [](Kernel& k) { k.exprs[4].bits = 1; });
  expect_fault("have an index", [](Kernel& k) { k.exprs[4].index = 0; });
  expect_fault("a constant is a value of its type", [](Kernel& k) {
    k.exprs[1] = Expr{};
    k.exprs[1].bits = 0x3fb999999999999aull;  // 0.1 in double
  });
  expect_fault("a cast changes the type", [](Kernel& k) {
    k.exprs[4].kind = ExprKind::Cast;
    k.exprs[4].args[1] = -1;
  });
}

TEST(KernelVerifier, FindsPlantedFaultsOfReductionsAndStores) {
  expect_fault("a reduction needs a reduction axis", [](Kernel& k) {
    k.axes[1].reduction = false;
    k.buffers[2].strides[1] = StrideClass::Unit;
  });
  expect_fault("any and all reduce bool", [](Kernel& k) { k.exprs[3].reduce = ReduceOp::Any; });
  expect_fault("its operand's type", [](Kernel& k) { k.exprs[3].dtype = DType::Float64; });
  expect_fault("same along the row", [](Kernel& k) { k.stores[1].expr = 4; });
  expect_fault("stores something", [](Kernel& k) { k.stores.clear(); });
  expect_fault("stored once", [](Kernel& k) { k.stores.pop_back(); });
  expect_fault("stored once", [](Kernel& k) { k.stores.push_back(k.stores[0]); });
  expect_fault("an input is not written", [](Kernel& k) { k.stores[0].buffer = 0; });
  expect_fault("there is no such expression", [](Kernel& k) { k.stores[0].expr = 7; });
  expect_fault("a store has its buffer's element type", [](Kernel& k) { k.stores[0].expr = 5; });
}

TEST(KernelVerifier, HalfTypesAreReducedInAWiderType) {
  const Kernel k = parse(
      "kernel\n axes parallel, reduction\n b0 = in f16 [any, unit]\n b1 = out f16 [unit, zero]\n"
      " %0 = load b0 : f16\n %1 = reduce sum %0 : f16\n store b1, %1\n");
  EXPECT_THROW(verify(k), InternalError);
}

TEST(KernelVerifier, MessageShowsTheLine) {
  Kernel k = row_kernel();
  k.exprs[5].dtype = DType::Float32;
  try {
    verify(k);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_STREQ(e.what(), "kernel, %5 = gt %4, %3 : f32: the result has the wrong type");
  }
}

}  // namespace
}  // namespace fxjit::kernel
