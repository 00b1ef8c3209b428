#include "passes/infer_types.h"

#include <gtest/gtest.h>

#include "program.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

// As the recorder leaves it: the sizes of this call as constants.
void forget_symbols(ShapeEnv& env, Node* n) {
  auto seen = std::make_shared<TensorType>(*n->tensor_type());
  for (Dim& d : seen->sizes) d = env.constant(env.hint(d));
  for (Dim& d : seen->strides) d = env.constant(env.hint(d));
  n->set_tensor_type(seen);
}

std::string type_of(const Program& p, const Node* n) { return to_string(p.env, *n->tensor_type()); }

bool guards_equal(const Program& p, Dim d, int64_t v) {
  for (const SymGuard& g : p.env.guards())
    if (g.rel == SymGuard::Eq && ((g.lhs == d && p.env.is_const(g.rhs, v)) || (g.rhs == d && p.env.is_const(g.lhs, v))))
      return true;
  return false;
}

TEST(InferTypes, ObservedConstantsBecomeSymbolic) {
  Program p;
  Node* x = p.f32({6, 5}, true);
  Node* y = p.build.mul(p.build.add(x, 1.5), x);
  Node* s = p.build.sum(y, 1);
  for (Node* n : p.graph->nodes())
    if (n->op() == fx::Opcode::CallFunction) forget_symbols(p.env, n);
  p.output({s});
  EXPECT_EQ(type_of(p, y), "f32[6, 5] (5, 1)");
  PassContext c = p.context();
  EXPECT_TRUE(*infer_types(c));
  EXPECT_EQ(type_of(p, y), "f32[s0, s1] (s1, 1)");
  EXPECT_EQ(type_of(p, s), "f32[s0, 1] (1, 1)");
  EXPECT_TRUE(c.notes.empty());
  EXPECT_FALSE(*infer_types(c));
}

TEST(InferTypes, CallWithoutARuleFixesWhatItReads) {
  Program p;
  Node* x = p.f32({6, 5}, true);
  const std::vector<Dim> sizes = x->tensor_type()->sizes;
  Node* y = p.opaque(p.build.exp(x));
  Node* z = p.build.exp(y);
  forget_symbols(p.env, y);
  forget_symbols(p.env, z);
  p.output({z});
  PassContext c = p.context();
  ASSERT_TRUE(infer_types(c).ok());
  EXPECT_EQ(type_of(p, y), "f32[6, 5] (5, 1)");
  EXPECT_EQ(type_of(p, z), "f32[6, 5] (5, 1)");
  EXPECT_TRUE(guards_equal(p, sizes[0], 6));
  EXPECT_TRUE(guards_equal(p, sizes[1], 5));
  EXPECT_EQ(type_of(p, x), "f32[6, 5] (5, 1)") << "a symbol that is guarded to be a number is that number";
}

TEST(InferTypes, DisagreementKeepsWhatWasObserved) {
  Program p;
  Node* x = p.f32({6, 5}, true);
  Node* y = p.build.exp(x);
  auto odd = std::make_shared<TensorType>(*y->tensor_type());
  odd->sizes = {p.env.constant(6), p.env.constant(5)};
  odd->strides = {p.env.constant(1), p.env.constant(6)};
  y->set_tensor_type(odd);
  p.output({y});
  PassContext c = p.context();
  ASSERT_TRUE(infer_types(c).ok());
  EXPECT_EQ(type_of(p, y), "f32[6, 5] (1, 6)");
  EXPECT_EQ(type_of(p, x), "f32[6, 5] (5, 1)");
  ASSERT_EQ(c.notes.size(), 1u);
  EXPECT_TRUE(c.notes[0].starts_with("exp: ")) << c.notes[0];
}

TEST(InferTypes, InPlaceCallsHaveTheTypeOfWhatTheyWrite) {
  Program p;
  Node* x = p.f32({6, 5}, true);
  Node* y = p.inplace("aten::add_.Tensor", {x, 1.0, 1});
  forget_symbols(p.env, y);
  p.output({y});
  PassContext c = p.context();
  ASSERT_TRUE(infer_types(c).ok());
  EXPECT_EQ(*y->tensor_type(), *x->tensor_type());
}

TEST(InferTypes, ProductsAndNormsKeepSymbols) {
  Program p;
  Node* x = p.f32({6, 8}, true);
  Node* w = p.f32({8, 3});
  Node* y = p.call("aten::mm", {x, w});
  EXPECT_EQ(type_of(p, y), "f32[s0, 3] (3, 1)");
  Node* soft = p.call("aten::_softmax", {y, -1, false});
  EXPECT_EQ(type_of(p, soft), "f32[s0, 3] (3, 1)");
  Node* b = p.f32({4, 6, 8}, true);
  EXPECT_EQ(type_of(p, p.call("aten::matmul", {b, w})), "f32[s2, s0, 3] (s0*3, 3, 1)");
}

TEST(InferTypes, BatchedProductsBroadcast) {
  Program p;
  Node* a = p.f32({2, 3, 4, 5}, true);
  Node* b = p.f32({3, 5, 6}, true);
  EXPECT_EQ(type_of(p, p.call("aten::matmul", {a, b})), "f32[s0, s1, s2, s4] (s1*s2*s4, s2*s4, s4, 1)");
  EXPECT_FALSE(p.build.try_call("aten::matmul", {a, p.f32({6, 5})}));
}

TEST(InferTypes, ConvolutionFollowsItsWindow) {
  Program p;
  Node* x = p.f32({2, 3, 9, 12}, true);
  Node* w = p.f32({5, 3, 3, 3});
  std::vector<Argument> args{x,
                             w,
                             Argument(),
                             Argument::list({2, 2}),
                             Argument::list({1, 1}),
                             Argument::list({1, 1}),
                             false,
                             Argument::list({0, 0}),
                             1};
  const TensorType& y = *p.call("aten::convolution", args)->tensor_type();
  std::vector<int64_t> sizes;
  for (Dim d : y.sizes) sizes.push_back(p.env.hint(d));
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 5, 5, 6}));
  EXPECT_FALSE(p.env.is_const(y.sizes[2]));
  int64_t other[] = {4, 3, 20, 33};  // the symbols' values: n, channels, height, width
  EXPECT_EQ(p.env.evaluate(y.sizes[2], other), 10);
  EXPECT_EQ(p.env.evaluate(y.sizes[3], other), 17);
}

TEST(InferTypes, ResultsOfATupleAreInferredOneByOne) {
  Program p;
  Node* x = p.f32({6, 8}, true);
  Node* norm =
      p.build.call_as("aten::native_layer_norm", {x, Argument::list({8}), Argument(), Argument(), 1e-5}, nullptr);
  std::vector<Node*> parts;
  for (int i = 0; i < 3; ++i) {
    parts.push_back(p.graph->call_function(fx::builtin_function("_operator.getitem"), Argument::tuple({norm, i})));
    auto seen = std::make_shared<TensorType>(*x->tensor_type());
    seen->sizes = {p.env.constant(6), p.env.constant(i == 0 ? 8 : 1)};
    seen->strides = {seen->sizes[1], p.env.constant(1)};
    parts[i]->set_tensor_type(seen);
  }
  p.output({parts[0], parts[1], parts[2]});
  PassContext c = p.context();
  EXPECT_TRUE(*infer_types(c));
  EXPECT_EQ(type_of(p, parts[0]), "f32[s0, 8] (8, 1)");
  EXPECT_EQ(type_of(p, parts[2]), "f32[s0, 1] (1, 1)");
}

}  // namespace
}  // namespace fxjit::inline v0::passes
