#include "passes/decompose.h"

#include <gtest/gtest.h>

#include "evaluator.h"
#include "passes/infer.h"

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

// The evaluator knows no lists of tensors: the parts are checked against what they are made of.
TEST(Decompose, PartsBecomeViews) {
  struct Case {
    const char* schema;
    std::vector<Argument> how;
    std::vector<std::string> views;
  };
  const Case cases[] = {
      {"aten::chunk", {3, -1}, {"aten::slice.Tensor(%x0, 1, 0, 3, 1)", "aten::slice.Tensor(%x0, 1, 6, 7, 1)"}},
      {"aten::split.Tensor", {3, 1}, {"aten::slice.Tensor(%x0, 1, 0, 3, 1)", "aten::slice.Tensor(%x0, 1, 6, 7, 1)"}},
      {"aten::split_with_sizes",
       {Argument::list({1, 2, 4}), 1},
       {"aten::slice.Tensor(%x0, 1, 0, 1, 1)", "aten::slice.Tensor(%x0, 1, 3, 7, 1)"}},
      {"aten::unbind.int", {0}, {"aten::select.int(%x0, 0, 0)", "aten::select.int(%x0, 0, 2)"}},
  };
  for (const Case& c : cases) {
    Program p;
    Node* x = p.f32({5, 7}, true);
    std::vector<Argument> args{x};
    args.insert(args.end(), c.how.begin(), c.how.end());
    Node* whole = p.build.call_as(c.schema, args, nullptr);
    auto types = infer_call(*whole, p.env);
    ASSERT_TRUE(types) << c.schema;
    std::vector<Argument> results;
    for (int i : {0, 2}) {
      Node* part = p.graph->call_function(fx::builtin_function("_operator.getitem"), Argument::tuple({whole, i}));
      part->set_tensor_type((*types)[i]);
      results.emplace_back(part);
    }
    p.output(results);
    PassContext context = p.context();
    EXPECT_TRUE(*decompose(context));
    for (size_t i : {0, 1}) {
      EXPECT_NE(p.print().find(c.views[i]), std::string::npos) << c.schema << "\n" << p.print();
      // The sizes and strides that the rule has said are those of the view.
      const Node* view = p.graph->output_node()->arg(0)[i].as_node();
      EXPECT_EQ(to_string(p.env, *view->tensor_type()), to_string(p.env, *(*types)[2 * i])) << c.schema;
    }
    verify(context);
  }
}

TEST(Decompose, PartsThatEagerRefusesStay) {
  Program p;
  Node* x = p.f32({5, 7});
  Node* whole = p.build.call_as("aten::split_with_sizes", {x, Argument::list({1, 2}), 1}, nullptr);
  EXPECT_FALSE(infer_call(*whole, p.env));
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
