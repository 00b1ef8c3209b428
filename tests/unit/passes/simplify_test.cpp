// canonicalize, fold, cse and dce.
#include <gtest/gtest.h>

#include "evaluator.h"
#include "passes/canonicalize.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/fold.h"
#include "passes/infer.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

void run_canonicalize(PassContext& c) { EXPECT_TRUE(canonicalize(c).ok()); }
void run_cse(PassContext& c) { EXPECT_TRUE(cse(c).ok()); }

TEST(Canonicalize, CallsThatGiveBackTheirOperand) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.call("aten::to.dtype", {x, DType::Float32, false, false, Argument()});
  Node* b = p.call("aten::contiguous", {a, fx::MemoryFormat::Contiguous});
  Node* c = p.build.call_as("aten::dropout", {b, 0.5, false}, b->tensor_type());
  p.output({c, p.build.exp(c)});
  expect_same_after(p, run_canonicalize);
  EXPECT_EQ(p.graph->output_node()->arg(0)[0], Argument(x)) << "eager returns the operand itself";
  EXPECT_EQ(p.graph->size(), 3u);
}

TEST(Canonicalize, CallsThatCopyStay) {
  Program p;
  Node* x = p.input(DType::Float32, {4, 3}, false, {1, 4});
  Node* y = p.f32({4, 3});
  p.output({p.call("aten::to.dtype", {y, DType::Float16, false, false, Argument()}),
            p.call("aten::to.dtype", {y, DType::Float32, false, true, Argument()}),
            p.call("aten::contiguous", {x, fx::MemoryFormat::Contiguous})});
  PassContext c = p.context();
  EXPECT_FALSE(*canonicalize(c));
  EXPECT_EQ(p.graph->size(), 6u);
  expect_same_after(p, run_canonicalize);
}

TEST(Canonicalize, DropoutInTrainingStays) {
  Program p;
  Node* x = p.f32({4, 3});
  p.output({p.build.call_as("aten::dropout", {x, 0.5, true}, x->tensor_type())});
  PassContext c = p.context();
  EXPECT_FALSE(*canonicalize(c));
}

TEST(Canonicalize, ADetachedTensorIsAnotherOneForTheCaller) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* d = p.call("aten::detach", {x});
  p.output({d, p.build.exp(d)});
  expect_same_after(p, run_canonicalize);
  EXPECT_EQ(p.graph->output_node()->arg(0)[0], Argument(d));
  EXPECT_EQ(d->num_users(), 1u) << "what computes reads the operand";
}

// The evaluator knows no lists of tensors: the parts are checked against what they are made of.
TEST(Canonicalize, PartsBecomeViews) {
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
    EXPECT_TRUE(*canonicalize(context));
    for (size_t i : {0, 1}) {
      EXPECT_NE(p.print().find(c.views[i]), std::string::npos) << c.schema << "\n" << p.print();
      // The sizes and strides that the rule has said are those of the view.
      const Node* view = p.graph->output_node()->arg(0)[i].as_node();
      EXPECT_EQ(to_string(p.env, *view->tensor_type()), to_string(p.env, *(*types)[2 * i])) << c.schema;
    }
    verify(context);
  }
}

TEST(Canonicalize, PartsThatEagerRefusesStay) {
  Program p;
  Node* x = p.f32({5, 7});
  Node* whole = p.build.call_as("aten::split_with_sizes", {x, Argument::list({1, 2}), 1}, nullptr);
  EXPECT_FALSE(infer_call(*whole, p.env));
}

TEST(Canonicalize, WhatIsWrittenInPlaceIsTheDetachedTensor) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* d = p.call("aten::detach", {p.build.exp(x)});
  p.output({p.inplace("aten::mul_.Tensor", {d, 2.0})});
  PassContext c = p.context();
  EXPECT_FALSE(*canonicalize(c));
}

void run_fold(PassContext& c) { EXPECT_TRUE(fold(c).ok()); }

TEST(Fold, ValuesOfTheOperand) {
  Program p;
  Node* x = p.input(DType::Float16, {4, 3});
  Node* wide = p.build.cast(x, DType::Float32);
  Node* back = p.build.cast(p.build.div(p.build.mul(wide, 1.0), 1.0), DType::Float16);
  p.output({p.build.mul(back, 2.0)});
  expect_same_after(p, run_fold);
  EXPECT_NE(p.print().find("aten::mul.Tensor(%x0, 2.0)"), std::string::npos) << p.print();
}

TEST(Fold, NarrowingAndBackStays) {
  Program p;
  Node* x = p.f32({4, 3});
  p.output({p.build.mul(p.build.cast(p.build.cast(x, DType::BFloat16), DType::Float32), 2.0)});
  PassContext c = p.context();
  EXPECT_FALSE(*fold(c));
  expect_same_after(p, run_fold);
}

TEST(Fold, ZeroAndOneOnlyWhereEveryBitStays) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* i = p.input(DType::Int32, {4, 3});
  p.output({p.build.mul(p.build.add(x, 0.0), 2.0),    // -0 + 0 is 0
            p.build.mul(p.build.mul(x, 0.0), 2.0),    // NaN * 0 is NaN
            p.build.add(p.build.mul(i, 1.0), 2.0)});  // a float
  PassContext c = p.context();
  EXPECT_FALSE(*fold(c)) << p.print();
  Program q;
  Node* y = q.f32({4, 3});
  q.output({q.build.mul(q.build.sub(y, 0.0), 2.0)});
  expect_same_after(q, run_fold);
  EXPECT_EQ(q.count("aten::sub.Tensor"), 0u) << q.print();
}

TEST(Fold, TheCallerGetsATensorOfItsOwn) {
  Program p;
  Node* x = p.f32({4, 3});
  p.output({p.build.mul(x, 1.0)});
  PassContext c = p.context();
  EXPECT_FALSE(*fold(c));
  expect_same_after(p, run_fold);
}

TEST(Fold, ABroadcastOperandIsNotTheResult) {
  Program p;
  Node* row = p.f32({1, 3});
  Node* ones = p.call("aten::ones_like", {p.f32({4, 3}), Argument(), Argument(), Argument(), Argument(), Argument()});
  p.output({p.build.exp(p.build.mul(row, ones))});
  expect_same_after(p, run_fold);
  EXPECT_EQ(p.count("aten::mul.Tensor"), 1u) << p.print();
}

TEST(Fold, OneNumberThroughout) {
  Program p;
  Node* x = p.f32({4, 3}, true);
  Node* ones = p.call("aten::ones_like", {x, Argument(), Argument(), Argument(), Argument(), Argument()});
  Node* three = p.build.add(p.build.mul(ones, 2.0), 1.0);
  p.output({three, p.build.exp(p.build.mul(x, three))});
  expect_same_after(p, run_fold);
  EXPECT_EQ(p.count("aten::full_like"), 2u) << p.print();
  EXPECT_NE(p.print().find("3.0"), std::string::npos) << p.print();
}

TEST(Fold, FunctionsAreLeftToTheKernel) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* ones = p.call("aten::ones_like", {x, Argument(), Argument(), Argument(), Argument(), Argument()});
  p.output({p.build.exp(ones)});
  PassContext c = p.context();
  EXPECT_FALSE(*fold(c)) << "the emitted exp and the reference may differ in the last bit";
}

TEST(Cse, EqualPureNodesBecomeOne) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.build.exp(x);
  Node* b = p.call("aten::exp", {x});
  p.output({p.build.add(a, b)});
  expect_same_after(p, run_cse);
  EXPECT_EQ(p.count("aten::exp"), 1u);
}

TEST(Cse, LiteralsMustBeTheSame) {
  Program p;
  Node* x = p.f32({4, 3});
  p.output({p.build.add(p.build.mul(x, 0.0), p.build.mul(x, -0.0)), p.build.add(x, 1), p.build.add(x, 1.0)});
  PassContext c = p.context();
  EXPECT_FALSE(*cse(c));
}

TEST(Cse, TwoResultsStayTwoTensors) {
  Program p;
  Node* x = p.f32({4, 3});
  p.output({p.build.exp(x), p.build.exp(x), p.call("aten::view", {p.build.exp(x), Argument::list({12})})});
  expect_same_after(p, run_cse);
  EXPECT_EQ(p.count("aten::exp"), 3u);
}

TEST(Cse, RandomCallsStay) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.impure("aten::rand_like", {x}, x->tensor_type());
  Node* b = p.impure("aten::rand_like", {x}, x->tensor_type());
  p.output({p.build.sub(a, b)});
  expect_same_after(p, run_cse);
  EXPECT_EQ(p.count("aten::rand_like"), 2u);
}

TEST(Cse, AnAttributeIsReadOnce) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* a = p.graph->get_attr("w");
  Node* b = p.graph->get_attr("w");
  for (Node* n : {a, b}) n->set_tensor_type(x->tensor_type());
  p.output({p.build.add(a, b), a, b});
  PassContext c = p.context();
  EXPECT_TRUE(*cse(c));
  EXPECT_EQ(p.graph->output_node()->arg(0)[1], p.graph->output_node()->arg(0)[2]);
}

TEST(Dce, UnusedPureNodesGoAndEffectsStay) {
  Program p;
  Node* x = p.f32({4, 3});
  p.build.exp(p.build.exp(x));
  p.impure("aten::rand_like", {x}, x->tensor_type());
  p.impure("test::effect", {x}, x->tensor_type());
  p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  p.output({x});
  PassContext c = p.context();
  EXPECT_TRUE(*dce(c));
  EXPECT_EQ(p.count("aten::exp"), 0u);
  EXPECT_EQ(p.graph->size(), 5u);
  EXPECT_FALSE(*dce(c));
}

}  // namespace
}  // namespace fxjit::inline v0::passes
