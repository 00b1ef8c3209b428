// Writes of inputs, from in-place operators to kernels that write operands.
#include <gtest/gtest.h>

#include "evaluator.h"
#include "kernel/kernel_call.h"
#include "passes/dce.h"
#include "passes/functionalize.h"
#include "passes/fuse.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

void run_to_fuse(PassContext& c) {
  Result<bool> ok = functionalize(c);
  ASSERT_TRUE(ok.ok()) << ok.reason();
  ASSERT_TRUE(dce(c).ok());
  ASSERT_TRUE(fuse(c).ok());
}

size_t direct_writes(const Program& p) {
  size_t n = 0;
  for (const Node* node : p.graph->nodes()) {
    if (node->op() != fx::Opcode::CallFunction) continue;
    const auto* k = dynamic_cast<const kernel::KernelCall*>(&node->callable());
    n += k && k->writes_operand();
  }
  return n;
}

TEST(InPlace, AnElementwiseKernelWritesItsInput) {
  Program p;
  Node* x = p.f32({4, 3}, true);
  p.inplace("aten::mul_.Tensor", {x, 2.0});
  p.inplace("aten::add_.Tensor", {x, p.f32({3}), 1});
  p.output({x, p.build.exp(x)});
  expect_same_after(p, run_to_fuse);
  EXPECT_EQ(direct_writes(p), 1u) << p.print();
  EXPECT_EQ(p.count("aten::copy_"), 0u);
  EXPECT_EQ(p.kernels(), 1u);
}

TEST(InPlace, AKernelWithoutOtherResults) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.f32({4, 3});
  p.inplace("aten::copy_", {x, y, false});
  p.output({y});
  expect_same_after(p, run_to_fuse);
  EXPECT_EQ(direct_writes(p), 1u) << p.print();
}

TEST(InPlace, TwoInputsOfOneKernel) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.f32({4, 3});
  Node* old = p.build.exp(x);
  p.inplace("aten::add_.Tensor", {x, y, 1});
  p.inplace("aten::mul_.Tensor", {y, old});
  p.output({p.build.sub(x, y)});
  expect_same_after(p, run_to_fuse);
  EXPECT_EQ(p.count("aten::copy_"), 0u) << p.print();
}

TEST(InPlace, ReadersOfTheOldValueComeFirst) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* old = p.flip(x);  // would find the new value behind the kernel
  p.inplace("aten::mul_.Tensor", {x, 2.0});
  p.output({old, p.call("aten::sum.dim_IntList", {x, Argument::list({1}), false, Argument()})});
  expect_same_after(p, run_to_fuse);
}

TEST(InPlace, AReaderThatNeedsTheKernelKeepsTheCopy) {
  Program p;
  Node* x = p.f32({4, 4});
  Node* w = p.call("aten::select.int", {x, 0, 0});
  Node* y = p.build.mul(x, 2.0);
  Node* z = p.flip(y);
  Node* late = p.build.add(z, w);
  p.inplace("aten::copy_", {x, y, false});
  p.output({late});
  expect_same_after(p, run_to_fuse);
}

TEST(InPlace, AKernelThatReadsOtherPlacesKeepsTheCopy) {
  Program p;
  Node* x = p.f32({4, 4});
  Node* t = p.call("aten::t", {x});
  Node* y = p.build.add(x, t);
  p.inplace("aten::copy_", {x, y, false});
  p.output({x});
  expect_same_after(p, run_to_fuse);
  EXPECT_EQ(direct_writes(p), 0u) << p.print();
  EXPECT_EQ(p.count("aten::copy_"), 1u);
}

TEST(InPlace, RowKernelsStoreWhenTheRowIsRead) {
  Program p;
  Node* x = p.f32({4, 5});
  Node* row = p.f32({4, 1});
  Node* y = p.build.sub(x, p.build.amax(x, 1));
  p.inplace("aten::copy_", {x, y, false});
  p.inplace("aten::add_.Tensor", {row, p.build.amax(y, 1), 1});
  p.output({x, p.build.exp(row)});
  expect_same_after(p, run_to_fuse);
  EXPECT_EQ(p.count("aten::copy_"), 0u) << p.print();
  EXPECT_EQ(p.kernels(), 1u);
}

TEST(InPlace, AnotherLayoutKeepsTheCopy) {
  Program p;
  Node* x = p.input(DType::Float32, {4, 5}, false, {10, 2});
  p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  p.output({p.build.exp(x)});
  expect_same_after(p, run_to_fuse);
  EXPECT_EQ(p.count("aten::copy_"), 1u);
}

TEST(InPlace, AResultThatOthersReadKeepsTheCopy) {
  Program p;
  Node* x = p.f32({4, 5});
  p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  p.output({p.call("aten::softmax.int", {x, 0, Argument()})});
  PassContext c = p.context();
  run_to_fuse(c);
  EXPECT_EQ(p.count("aten::copy_"), 1u) << p.print();
  EXPECT_NO_THROW(verify(c));
}

}  // namespace
}  // namespace fxjit::inline v0::passes
