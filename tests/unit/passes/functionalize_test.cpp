#include "passes/functionalize.h"

#include <gtest/gtest.h>

#include "evaluator.h"
#include "passes/dce.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

void run_functionalize(PassContext& c) {
  Result<bool> ok = functionalize(c);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : ok.reason());
  EXPECT_TRUE(dce(c).ok());
}

std::string refusal(Program& p) {
  PassContext c = p.context();
  Result<bool> r = functionalize(c);
  return r.ok() ? "" : r.reason();
}

// Every node but the copies into inputs is pure afterwards.
void expect_functional(const Program& p) {
  for (const Node* n : p.graph->nodes()) {
    bool checked = n->op() == fx::Opcode::CallFunction && !is_call(*n, "aten::copy_");
    EXPECT_FALSE(checked && n->is_impure()) << p.print();
  }
}

TEST(Functionalize, IntermediatesAreRenamed) {
  Program p;
  Node* x = p.f32({4, 3}, true);
  Node* y = p.build.add(x, 1.0);
  Node* before = p.build.exp(y);
  Node* same = p.inplace("aten::mul_.Tensor", {y, 2.0});
  Node* relu = p.inplace("aten::relu_", {same});
  p.output({before, relu, p.build.exp(y), y});
  expect_same_after(p, run_functionalize);
  expect_functional(p);
  EXPECT_EQ(p.count("aten::copy_"), 0u);
}

TEST(Functionalize, InputsAreWrittenOnceAtTheEnd) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* before = p.build.exp(x);
  Node* a = p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  Node* b = p.inplace("aten::mul_.Tensor", {a, x});
  p.output({before, b, p.build.exp(x)});
  expect_same_after(p, run_functionalize);
  expect_functional(p);
  EXPECT_EQ(p.count("aten::copy_"), 1u);
  EXPECT_EQ(p.graph->output_node()->arg(0)[1], Argument(x)) << "the caller gets its own tensor";
  EXPECT_TRUE(is_call(*p.graph->output_node()->prev(), "aten::copy_"));
}

TEST(Functionalize, TheResultIsCastToWhatIsWritten) {
  Program p;
  Node* x = p.input(DType::Float16, {4, 3});
  Node* y = p.f32({4, 3});
  Node* i = p.input(DType::Int32, {4, 3});
  p.inplace("aten::add_.Tensor", {x, y, 1});
  p.inplace("aten::eq_.Tensor", {i, i});
  p.output({p.build.exp(x), p.build.add(i, 1)});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, TheStridesOfSingleElementsStay) {
  Program p;
  Node* t = p.call("aten::t", {p.f32({4, 1})});  // [1, 4] with strides (1, 1)
  Node* y = p.call("aten::clone", {t, Argument()});
  p.output({p.inplace("aten::add_.Tensor", {y, y, 1}), p.build.add(y, y)});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, CopyFillAndZero) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* row = p.f32({3});
  Node* half = p.input(DType::Float16, {4, 3});
  Node* a = p.build.add(x, 1.0);
  p.inplace("aten::copy_", {a, half, false});
  Node* b = p.build.add(x, 1.0);
  p.inplace("aten::zero_", {b});
  Node* c = p.build.add(x, 1.0);
  p.inplace("aten::copy_", {c, row, false});
  p.inplace("aten::fill_.Scalar", {x, 2.5});
  p.output({a, b, c, p.build.exp(x)});
  expect_same_after(p, run_functionalize);
  expect_functional(p);
}

TEST(Functionalize, ACopiedInputIsNotTheInput) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.build.exp(x);
  Node* same = p.inplace("aten::copy_", {y, x, false});
  p.output({same});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, InputsThatSwapTheirValues) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.f32({4, 3});
  Node* old = p.call("aten::to.dtype", {x, DType::Float32, false, true, Argument()});
  p.inplace("aten::copy_", {x, y, false});
  p.inplace("aten::copy_", {y, old, false});
  p.output({x, y});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, AViewMadeBehindTheWriteIsAViewOfTheInput) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* w = p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  Node* v = p.call("aten::transpose.int", {w, 0, 1});
  Node* inner = p.call("aten::select.int", {v, 0, 1});
  p.output({inner, p.build.exp(v)});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, ACopyMadeBehindTheWriteIsNoView) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* w = p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  p.output({p.call("aten::to.dtype", {w, DType::Float16, false, false, Argument()})});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, AViewThatOnlyTheCallerGetsMayBeOlderThanTheWrite) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* v = p.call("aten::view", {x, Argument::list({12})});
  p.inplace("aten::mul_.Tensor", {x, 2.0});
  p.output({v});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, ADeadViewIsNoObstacle) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.build.add(x, 1.0);
  Node* use = p.build.exp(p.call("aten::view", {y, Argument::list({12})}));
  Node* v = p.call("aten::view", {y, Argument::list({3, 4})});
  p.inplace("aten::mul_.Tensor", {v, 2.0});
  p.output({use, v});
  expect_same_after(p, run_functionalize);
}

TEST(Functionalize, RefusesLiveViews) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.build.add(x, 1.0);
  Node* v = p.call("aten::view", {y, Argument::list({12})});
  p.inplace("aten::mul_.Tensor", {y, 2.0});
  p.output({p.build.exp(v)});
  EXPECT_NE(refusal(p).find("%view"), std::string::npos) << refusal(p);
}

TEST(Functionalize, RefusesToWriteAViewOfAnInput) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* v = p.call("aten::select.int", {x, 0, 1});
  p.inplace("aten::mul_.Tensor", {v, 2.0});
  p.output({x});
  EXPECT_NE(refusal(p).find("input x0"), std::string::npos) << refusal(p);
}

TEST(Functionalize, RefusesWritesBehindAnUnknownAlias) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* y = p.build.exp(x);
  Node* maybe = p.opaque(y);
  p.inplace("aten::mul_.Tensor", {y, 2.0});
  p.output({p.build.exp(maybe)});
  EXPECT_FALSE(refusal(p).empty());
}

TEST(Functionalize, RefusesToReturnWhatMayBeAViewOfAWrittenInput) {
  Program p;
  Node* x = p.f32({4, 3});
  Node* w = p.inplace("aten::mul_.Tensor", {x, 2.0});
  Node* parts = p.build.call_as("aten::hsplit.int", {w, 3}, nullptr);
  Node* part = p.graph->call_function(fx::builtin_function("_operator.getitem"), Argument::tuple({parts, 0}));
  part->set_tensor_type(p.f32({4, 1})->tensor_type());
  p.output({part});
  EXPECT_NE(refusal(p).find("may get a view"), std::string::npos) << refusal(p);
}

TEST(Functionalize, RefusesWhatHasNoPureForm) {
  for (const char* schema : {"aten::normal_", "aten::t_", "aten::resize_", "aten::set_.source_Tensor"}) {
    Program p;
    Node* y = p.build.exp(p.f32({4, 3}));
    p.output({p.inplace(schema, {y})});
    EXPECT_NE(refusal(p).find("no pure form"), std::string::npos) << schema;
  }
}

TEST(Functionalize, RefusesWritesOfOtherCalls) {
  Program p;
  Node* x = p.f32({4, 3});
  p.output({p.impure("test::effect", {x}, x->tensor_type())});
  EXPECT_NE(refusal(p).find("writes its operands"), std::string::npos);
}

TEST(Functionalize, RefusesWhatMayRaiseAfterAnInputIsWritten) {
  auto program = [](Program& p, bool raise_first) {
    Node* x = p.f32({4, 3});
    Node* other = raise_first ? p.opaque(p.f32({4, 3})) : nullptr;
    p.inplace("aten::mul_.Tensor", {x, 2.0});
    if (!other) other = p.opaque(p.f32({4, 3}));
    p.output({other});
  };
  Program before, after;
  program(before, true);
  EXPECT_EQ(refusal(before), "");
  program(after, false);
  EXPECT_NE(refusal(after).find("may raise"), std::string::npos);
}

TEST(Functionalize, FormsOfSchemas) {
  EXPECT_EQ(functional_form("aten::add_.Tensor"), "aten::add.Tensor");
  EXPECT_EQ(functional_form("aten::relu_"), "aten::relu");
  EXPECT_EQ(functional_form("aten::__iand__.Scalar"), "aten::__and__.Scalar");
  EXPECT_EQ(functional_form("aten::index_put_"), "aten::index_put");
  EXPECT_EQ(functional_form("aten::uniform_"), "");
}

}  // namespace
}  // namespace fxjit::inline v0::passes
