#include "passes/fuse.h"

#include <gtest/gtest.h>

#include "evaluator.h"
#include "kernel/kernel_call.h"
#include "passes/decompose.h"
#include "tests/unit/allocations.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;
using kernel::KernelCall;

constexpr double kSums = 1e-6;

void run_fuse(PassContext& c) {
  Result<bool> ok = fuse(c);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : ok.reason());
}

const KernelCall& only_kernel(const Program& p) {
  const KernelCall* found = nullptr;
  for (const Node* n : p.graph->nodes())
    if (n->op() == fx::Opcode::CallFunction)
      if (const auto* k = dynamic_cast<const KernelCall*>(&n->callable())) found = k;
  return *found;
}

TEST(Fuse, AChainIsOneKernel) {
  Program p;
  Node* x = p.f32({4, 3}, true);
  p.output({p.build.mul(p.build.exp(p.build.add(x, 1.5)), x)});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 1u);
  EXPECT_EQ(p.graph->size(), 3u);
  EXPECT_EQ(only_kernel(p).qualified_name(), "fused_add_exp_mul");
  EXPECT_EQ(only_kernel(p).sources, (std::vector<std::string>{"add", "exp", "mul"}));
  EXPECT_EQ(only_kernel(p).buffers.size(), 2u);
}

TEST(Fuse, ValuesThatOthersReadAreResults) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.build.exp(x);
  Node* b = p.build.add(a, 1.0);
  p.output({p.opaque(a), p.build.mul(b, x), a});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 1u);
  EXPECT_EQ(only_kernel(p).results.size(), 2u);
}

TEST(Fuse, ReductionsOfARowAndWhatIsAroundThem) {
  Program p;
  Node* x = p.f32({4, 6}, true);
  Node* y = p.build.mul(x, 2.0);
  Node* e = p.build.exp(p.build.sub(y, p.build.amax(y, 1)));
  Node* r = p.build.div(e, p.build.sum(e, 1));
  p.output({p.build.add(r, x)});
  expect_same_after(p, run_fuse, kSums);
  EXPECT_EQ(p.kernels(), 1u) << p.print();
  EXPECT_EQ(only_kernel(p).results.size(), 1u);
}

TEST(Fuse, LayerNormWithItsParameters) {
  Program p;
  Node* x = p.f32({4, 6});
  Node* norm = p.call("aten::layer_norm",
                      {p.build.add(x, p.f32({4, 6})), Argument::list({6}), p.f32({6}), p.f32({6}), 1e-5, true});
  p.output({norm});
  expect_same_after(
      p,
      [](PassContext& c) {
        EXPECT_TRUE(*decompose(c));
        run_fuse(c);
      },
      2e-5);
  EXPECT_EQ(p.kernels(), 1u) << p.print();
}

TEST(Fuse, ARowResultWithoutItsDimension) {
  Program p;
  Node* x = p.f32({4, 6});
  Node* s = p.call("aten::sum.dim_IntList", {x, Argument::list({1}), false, Argument()});
  Node* t = p.build.mul(s, 0.5);
  p.output({p.build.sub(x, p.build.unsqueeze(t, 1)), t});
  expect_same_after(p, run_fuse, kSums);
  EXPECT_EQ(p.kernels(), 1u) << p.print();
}

TEST(Fuse, ARowResultThatMeetsTheOtherDimensionIsNotFused) {
  Program p;
  Node* x = p.f32({5, 5});
  Node* s = p.call("aten::sum.dim_IntList", {x, Argument::list({1}), false, Argument()});
  p.output({p.build.sub(x, s)});  // s[j], not s[i]
  expect_same_after(p, run_fuse, kSums);
  EXPECT_EQ(p.kernels(), 2u) << p.print();
}

TEST(Fuse, OperatorsOnRowsBeforeTheReductionJoin) {
  Program p;
  Node* x = p.f32({4, 6});
  Node* scale = p.build.exp(p.f32({4, 1}));
  Node* y = p.build.mul(x, scale);
  p.output({p.build.sum(y, 1), y});
  expect_same_after(p, run_fuse, kSums);
  EXPECT_EQ(p.kernels(), 1u) << p.print();
}

TEST(Fuse, NothingIsRecomputedForABroadcast) {
  Program p;
  Node* row = p.build.exp(p.f32({6}));
  p.output({p.build.add(p.f32({4, 6}), row)});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 2u) << "exp runs 6 times, not 24";
}

TEST(Fuse, ViewsOfOperandsCostNothing) {
  Program p;
  Node* x = p.f32({4, 6});
  Node* y = p.f32({6, 4});
  Node* t = p.call("aten::transpose.int", {y, 0, 1});
  Node* s = p.call("aten::slice.Tensor", {p.f32({4, 12}), 1, 3, 9, 1});
  p.output({p.build.add(p.build.mul(x, t), s)});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 1u);
  EXPECT_EQ(p.count("aten::transpose.int") + p.count("aten::slice.Tensor"), 0u) << p.print();
}

TEST(Fuse, AViewThatTheCallerGetsStays) {
  Program p;
  Node* x = p.f32({4, 6});
  Node* y = p.build.exp(x);
  Node* v = p.call("aten::view", {y, Argument::list({24})});
  p.output({v, p.build.add(v, 1.0)});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.count("aten::view"), 1u);
}

TEST(Fuse, ATransposedIntermediateIsMadeFirst) {
  Program p;
  Node* x = p.f32({5, 5});
  Node* y = p.build.exp(x);
  Node* t = p.call("aten::t", {y});
  p.output({p.build.add(y, t)});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 2u) << p.print();
}

TEST(Fuse, GroupsStayFreeOfCycles) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.build.exp(x);
  Node* far = p.opaque(p.opaque(a));
  p.output({p.build.add(a, far)});  // a and the sum cannot be one kernel
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 2u) << p.print();
}

TEST(Fuse, SiblingsThatReadOneOperandShareAKernel) {
  Program p;
  Node* x = p.f32({4, 3});
  p.output({p.build.exp(x), p.build.mul(x, 2.0), p.build.rsqrt(p.f32({4, 3}))});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 2u) << p.print();
}

TEST(Fuse, SiblingsWithAPathBetweenThemDoNot) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.opaque(p.build.exp(x));
  p.output({p.call("aten::mul.Tensor", {p.opaque(p.build.rsqrt(a)), x})});
  expect_same_after(p, run_fuse);
  EXPECT_EQ(p.kernels(), 3u) << p.print();
}

TEST(Fuse, LargeGroupsAreCut) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = x;
  for (int i = 0; i < 200; ++i) y = p.build.add(p.build.mul(y, 0.5), x);
  p.output({y});
  expect_same_after(p, run_fuse);
  EXPECT_GE(p.kernels(), 400u / 64);
  EXPECT_LE(p.kernels(), 2 * 400u / 64 + 1);
}

TEST(Fuse, WhatNoKernelCanDoStaysWithItsReason) {
  Program p;
  Node* x = p.input(DType::Float64, {4, 3});
  Node* wide = p.impure("aten::exp", {x}, x->tensor_type());  // float64 functions have no code
  p.output({p.build.add(p.opaque(wide), 1.0)});
  PassContext c = p.context();
  EXPECT_TRUE(*fuse(c));
  EXPECT_EQ(p.count("aten::exp"), 1u);
  EXPECT_EQ(p.kernels(), 1u);
  ASSERT_EQ(c.notes.size(), 2u);
  EXPECT_TRUE(c.notes[0].starts_with("exp: ")) << c.notes[0];
  EXPECT_TRUE(c.notes[1].starts_with("opaque_negation: ")) << c.notes[1];
}

TEST(Fuse, EffectsKeepTheirOrder) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.impure("aten::rand_like", {x}, x->tensor_type());
  Node* m = p.build.mul(a, x);
  Node* b = p.impure("aten::rand_like", {m}, x->tensor_type());
  Node* c = p.impure("aten::rand_like", {x}, x->tensor_type());
  p.output({p.build.add(p.build.exp(m), c), b, a});
  expect_same_after(p, run_fuse);
}

TEST(Fuse, NothingIsFusedAroundWrites) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.build.exp(x);
  p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  p.output({p.build.mul(y, 2.0)});
  PassContext c = p.context();
  EXPECT_FALSE(*fuse(c));
  EXPECT_EQ(c.notes.size(), 1u);
}

TEST(Fuse, HalfTypesRoundAfterEachOperator) {
  for (DType t : {DType::Float16, DType::BFloat16}) {
    Program p;
    Node* x = p.input(t, {4, 9}, true);
    p.output({p.build.mul(p.build.add(p.build.exp(x), x), 0.3)});
    expect_same_after(p, run_fuse);
    EXPECT_EQ(p.kernels(), 1u);
  }
}

// Fuses a graph of many small layers.
test::Allocations fuse_layers(int layers) {
  Program p;
  Node* x = p.f32({8, 16});
  Node* w = p.f32({16, 16});
  for (int i = 0; i < layers; ++i) {
    Node* h = p.call("aten::mm", {x, w});
    Node* e = p.build.exp(p.build.sub(h, p.build.amax(h, 1)));
    Node* s = p.build.div(e, p.build.sum(e, 1));
    x = p.build.add(p.build.mul(s, 0.5), x);
  }
  p.output({x});
  PassContext c = p.context();
  const test::Allocations made = test::allocations_of([&] { run_fuse(c); });
  EXPECT_EQ(p.kernels(), static_cast<size_t>(layers));
  return made;
}

// Eight times the layers, eight times the allocations and bytes: sets of nodes for each node would show here.
TEST(Fuse, WorkGrowsWithTheNodes) {
  const test::Allocations small = fuse_layers(60), large = fuse_layers(480);
  EXPECT_GT(small.count, 60u);
  EXPECT_LT(large.count, 9 * small.count);
  EXPECT_LT(large.bytes, 10 * small.bytes);
}

}  // namespace
}  // namespace fxjit::inline v0::passes
