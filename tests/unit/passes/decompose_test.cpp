#include "passes/decompose.h"

#include <gtest/gtest.h>

#include "evaluator.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

void run(PassContext& c) { EXPECT_TRUE(*decompose(c)); }

// Roundings of float32 here, none in the evaluator's double.
constexpr double kFloat = 2e-5;
constexpr double kHalf = 2e-3;

TEST(Decompose, Softmax) {
  for (const char* schema : {"aten::softmax.int", "aten::_softmax", "aten::log_softmax.int", "aten::_log_softmax"}) {
    Program p;
    Node* x = p.f32({5, 7}, true);
    Argument last = std::string(schema).ends_with(".int") ? Argument() : Argument(false);
    p.output({p.call(schema, {x, 1, last})});
    expect_same_after(p, run, kFloat);
    EXPECT_EQ(p.count(schema), 0u);
    EXPECT_EQ(p.count("aten::amax"), 1u);
  }
}

TEST(Decompose, SoftmaxOfHalfTypesIsRoundedOnce) {
  for (DType t : {DType::Float16, DType::BFloat16}) {
    Program p;
    p.output({p.call("aten::_softmax", {p.input(t, {5, 7}), -1, false})});
    expect_same_after(p, run, t == DType::Float16 ? kHalf : 8 * kHalf);
    EXPECT_EQ(p.count("aten::to.dtype"), 2u) << p.print();
  }
}

TEST(Decompose, SoftmaxConvertsFirstWhereItIsTold) {
  Program p;
  Node* y = p.call("aten::softmax.int", {p.input(DType::Float16, {5, 7}), -1, DType::Float32});
  EXPECT_EQ(y->tensor_type()->dtype, DType::Float32);
  p.output({y});
  expect_same_after(p, run, kFloat);
}

TEST(Decompose, LayerNorm) {
  for (bool affine : {true, false}) {
    Program p;
    Node* x = p.f32({5, 7});
    Argument w = affine ? Argument(p.f32({7})) : Argument(), b = affine ? Argument(p.f32({7})) : Argument();
    p.output({p.call("aten::layer_norm", {x, Argument::list({7}), w, b, 1e-5, true})});
    expect_same_after(p, run, kFloat);
    EXPECT_EQ(p.count("aten::layer_norm"), 0u);
  }
}

// The rounding of a mean, times 1/sqrt(eps) = 316, would show.
TEST(Decompose, LayerNormOfConstantRowsIsZero) {
  Program p;
  Node* x = p.f32({500, 1});
  Node* rows = p.build.add(p.call("aten::expand", {x, Argument::list({500, 7}), false}), 0.1);
  p.output({p.call("aten::layer_norm", {rows, Argument::list({7}), Argument(), Argument(), 1e-5, true})});
  PassContext c = p.context();
  ASSERT_TRUE(run_passes(c).ok());  // kernels round their sums, the evaluator does not
  Execution e = run_program(p, 1);
  for (double v : elements(p, e.outcome.results[0])) EXPECT_EQ(v, 0);
}

TEST(Decompose, LayerNormOverTwoDimensionsOfAHalfType) {
  Program p;
  Node* x = p.input(DType::Float16, {5, 3, 4});
  Node* w = p.input(DType::Float16, {3, 4});
  p.output({p.call("aten::layer_norm", {x, Argument::list({3, 4}), w, Argument(), 1e-5, true})});
  expect_same_after(p, run, kHalf);
}

TEST(Decompose, NativeLayerNormGivesMeanAndScale) {
  Program p;
  Node* x = p.f32({5, 7});
  Node* norm =
      p.build.call_as("aten::native_layer_norm", {x, Argument::list({7}), p.f32({7}), Argument(), 1e-5}, nullptr);
  std::vector<Argument> parts;
  for (int i = 0; i < 3; ++i) {
    Node* part = p.graph->call_function(fx::builtin_function("_operator.getitem"), Argument::tuple({norm, i}));
    auto type = std::make_shared<TensorType>(*x->tensor_type());
    if (i > 0) type->sizes[1] = type->strides[0] = p.env.constant(1);
    part->set_tensor_type(type);
    parts.emplace_back(part);
  }
  p.output(parts);
  expect_same_after(p, run, kFloat);
  EXPECT_EQ(p.count("aten::native_layer_norm"), 0u);
  EXPECT_EQ(p.count("_operator.getitem"), 0u);
}

TEST(Decompose, BatchNormOutsideOfTraining) {
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{2, 3}, {2, 3, 5, 4}}) {
    Program p;
    Node* x = p.f32(sizes);
    Node* var = p.build.exp(p.f32({3}));  // positive
    p.output({p.call("aten::batch_norm", {x, p.f32({3}), p.f32({3}), p.f32({3}), var, false, 0.1, 1e-5, true})});
    expect_same_after(p, run, 1e-4);
    EXPECT_EQ(p.count("aten::batch_norm"), 0u);
  }
}

TEST(Decompose, TheStridesOfSingleElementsAreEager_s) {
  Program p;
  Node* x = p.call("aten::t", {p.f32({4, 1})});  // [1, 4] with strides (1, 1)
  Node* y = p.call("aten::_softmax", {x, -1, false});
  ASSERT_EQ(to_string(p.env, *y->tensor_type()), "f32[1, 4] (4, 1)");
  p.output({y});
  expect_same_after(p, run, kFloat);
}

TEST(Decompose, WhatEagerLaysOutOtherwiseStays) {
  Program p;
  Node* transposed = p.input(DType::Float32, {5, 7}, false, {1, 5});
  Node* wide = p.input(DType::Float64, {5, 7});
  Node* x = p.f32({5, 7});
  p.output({p.build.call_as("aten::_softmax", {transposed, 1, false}, x->tensor_type()),
            p.build.call_as("aten::_softmax", {wide, 1, false}, wide->tensor_type()),
            p.build.call_as("aten::_softmax", {x, 0, false}, x->tensor_type())});
  PassContext c = p.context();
  EXPECT_FALSE(*decompose(c));
}

}  // namespace
}  // namespace fxjit::inline v0::passes
