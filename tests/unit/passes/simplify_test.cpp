// canonicalize, cse and dce.
#include <gtest/gtest.h>

#include "evaluator.h"
#include "passes/canonicalize.h"
#include "passes/cse.h"
#include "passes/dce.h"

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
