// Reductions over rows, and views as index maps.
#include <gtest/gtest.h>

#include <cmath>

#include "graph_builder.h"

namespace fxjit::testing {
namespace {

Argument dim_list(std::initializer_list<Argument> dims) { return Argument::list(dims); }

TEST(LowerRows, SoftmaxIsOneKernel) {
  TypedGraph g;
  Node* x = g.symbolic(DType::Float32, {3, 4});
  Node* max = g.call("aten::amax", {x, dim_list({-1}), true});
  Node* e = g.call("aten::exp", {g.call("aten::sub.Tensor", {x, max, 1})});
  Node* sum = g.call("aten::sum.dim_IntList", {e, dim_list({-1}), true, Argument()});
  Node* y = g.call("aten::div.Tensor", {e, sum});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  EXPECT_EQ(kernel::print(l->kernel),
            "kernel\n  axes parallel, reduction\n  b0 = in f32 [any, unit]\n  b1 = out f32 [any, unit]\n"
            "  %0 = load b0 : f32\n  %1 = reduce max %0 : f32\n  %2 = sub %0, %1 : f32\n  %3 = exp %2 : f32\n"
            "  %4 = reduce sum %3 : f32\n  %5 = div %3, %4 : f32\n  store b1, %5\n");
  std::vector<float> in = iota(12), out(12);
  Launch run(g.env, *l);
  run.bind(x, in);
  run.bind(y, out);
  run.run();
  EXPECT_NEAR(out[0], 0.0320586, 1e-6);
  EXPECT_NEAR(out[11], 0.6439142, 1e-6);
}

TEST(LowerRows, LayerNormWithWeightsInHalf) {
  TypedGraph g;
  Node* x = g.input(DType::Float16, {2, 3, 8});
  Node* w = g.input(DType::Float16, {8});
  Node* wide = g.call("aten::to.dtype", {x, DType::Float32, false, false, Argument()});
  Node* mean = g.call("aten::mean.dim", {wide, dim_list({-1}), true, Argument()});
  Node* d = g.call("aten::sub.Tensor", {wide, mean, 1});
  Node* var = g.call("aten::mean.dim", {g.call("aten::mul.Tensor", {d, d}), dim_list({-1}), true, Argument()});
  Node* rstd = g.call("aten::rsqrt", {g.call("aten::add.Tensor", {var, 1e-5, 1})});
  Node* scaled = g.call("aten::mul.Tensor", {g.call("aten::mul.Tensor", {d, rstd}), w});
  Node* y = g.call("aten::to.dtype", {scaled, DType::Float16, false, false, Argument()});
  const Result<Lowered> l = g.lower({y, rstd});
  ASSERT_TRUE(l.ok()) << l.reason();
  EXPECT_EQ(l->kernel.axes.size(), 2u) << "batch and sequence are one axis";
  EXPECT_EQ(g.env.hint(l->extents[0]), 6);
  EXPECT_EQ(l->kernel.buffers[1].strides, (std::vector{kernel::StrideClass::Zero, kernel::StrideClass::Unit}));
  const kernel::Buffer& row_result = l->kernel.buffers.back();
  EXPECT_EQ(row_result.strides, (std::vector{kernel::StrideClass::Unit, kernel::StrideClass::Zero}));
}

TEST(LowerRows, ReductionOfTwoInnerDimensions) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {2, 3, 4});
  Node* y = g.call("aten::sum.dim_IntList", {x, dim_list({1, 2}), false, Argument()});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  EXPECT_EQ(l->kernel.axes.size(), 2u);
  EXPECT_EQ(g.env.hint(l->extents[1]), 12);
  std::vector<float> in = iota(24), out(2);
  Launch run(g.env, *l);
  run.bind(x, in);
  run.bind(y, out);
  run.run();
  EXPECT_EQ(out, (std::vector<float>{66, 210}));
}

TEST(LowerRows, ChannelsLastReducesItsChannels) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {2, 3, 2, 2}, {12, 1, 6, 3});
  Node* y = g.call("aten::sum.dim_IntList", {x, dim_list({1}), false, Argument()});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  EXPECT_EQ(l->kernel.buffers[0].strides.back(), kernel::StrideClass::Unit);
  EXPECT_EQ(l->kernel.axes.size(), 2u);
}

TEST(LowerRows, IntegersAndBoolAreWidened) {
  TypedGraph g;
  Node* b = g.input(DType::Bool, {4, 5});
  EXPECT_NE(g.text({g.call("aten::sum.dim_IntList", {b, dim_list({1}), false, Argument()})}).find("cast %0 : i64"),
            std::string::npos);
  EXPECT_NE(g.text({g.call("aten::any.dim", {g.input(DType::Float16, {4, 5}), 1, false})}).find("reduce any %1 : bool"),
            std::string::npos);
  EXPECT_NE(g.text({g.call("aten::amax", {b, dim_list({1}), false})}).find("reduce any"), std::string::npos);
}

TEST(LowerRows, RefusesWithReasons) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {4, 5});
  Node* columns = g.call("aten::sum.dim_IntList", {x, dim_list({0}), true, Argument()});
  EXPECT_EQ(g.reason({columns}), "a reduction over a dimension that is not innermost");
  Node* square = g.input(DType::Float32, {5, 5});
  Node* rows = g.call("aten::sum.dim_IntList", {square, dim_list({1}), false, Argument()});
  EXPECT_NE(g.reason({g.call("aten::sub.Tensor", {square, rows, 1})}).find("read at other places"), std::string::npos)
      << "the sums of rows stand beside columns";
  Node* t = g.input(DType::Float32, {2, 3, 4});
  Node* w = g.input(DType::Float32, {4});
  Node* both =
      g.call("aten::sum.dim_IntList", {g.call("aten::mul.Tensor", {t, w}), dim_list({1, 2}), false, Argument()});
  EXPECT_EQ(g.reason({both}), "the reduced dimensions do not form one run through memory");
  Node* empty = g.call("aten::sum.dim_IntList", {g.input(DType::Float32, {4, 0}), dim_list({1}), false, Argument()});
  EXPECT_EQ(g.reason({empty}), "a reduction of no elements");
  Node* all = g.call("aten::sum", {g.input(DType::Float32, {1 << 20}), Argument()});
  EXPECT_EQ(g.reason({all}), "a reduction of everything to one element");
  EXPECT_NE(g.reason({g.call("aten::any.dim", {g.input(DType::UInt8, {4, 5}), 1, false})}).find("uint8"),
            std::string::npos);
}

// Runs y over x and returns it.
std::vector<float> run_one(TypedGraph& g, Node* x, std::vector<float> in, Node* y, size_t count) {
  std::vector<float> out(count, -1);
  const Result<Lowered> l = g.lower({y});
  EXPECT_TRUE(l.ok()) << l.reason();
  if (!l) return out;
  Launch run(g.env, *l);
  run.bind(x, in);
  run.bind(y, out);
  run.run();
  return out;
}

TEST(LowerViews, PermuteInsideAGroup) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {2, 3});
  Node* t = g.call("aten::permute", {g.call("aten::neg", {x}), dim_list({1, 0})});
  Node* y = g.call("aten::contiguous", {g.call("aten::mul.Tensor", {t, 2}), fx::MemoryFormat::Contiguous});
  EXPECT_EQ(run_one(g, x, iota(6), y, 6), (std::vector<float>{-0.0f, -6, -2, -8, -4, -10}));
}

TEST(LowerViews, SelectSliceAndUnsqueeze) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {3, 4});
  Node* row = g.call("aten::select.int", {x, 0, -1});
  Node* part = g.call("aten::slice.Tensor", {row, 0, 1, INT64_MAX, 2});
  Node* y = g.call("aten::neg", {g.call("aten::unsqueeze", {part, 0})});
  EXPECT_EQ(run_one(g, x, iota(12), y, 2), (std::vector<float>{-9, -11}));
  const Result<Lowered> l = g.lower({y});
  EXPECT_EQ(g.env.hint(l->buffers[0].offset), 9);
  EXPECT_EQ(l->buffers[0].node, x) << "the views are an offset and a stride of the input";
}

TEST(LowerViews, SliceFromTheEndOfASymbolicSize) {
  TypedGraph g;
  Node* x = g.symbolic(DType::Float32, {6});
  Node* y = g.call("aten::neg", {g.call("aten::slice.Tensor", {x, 0, -2, INT64_MAX, 1})});
  EXPECT_EQ(run_one(g, x, iota(6), y, 2), (std::vector<float>{-4, -5}));
  const Result<Lowered> l = g.lower({y});
  EXPECT_EQ(g.env.evaluate(l->buffers[0].offset, std::vector<int64_t>{10}), 8);
}

TEST(LowerViews, ReshapeMergesAndSplits) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {2, 6});
  Node* w = g.input(DType::Float32, {3});
  // The group runs over the finest of the shapes: 2, 2, 3.
  Node* split = g.call("aten::view", {g.call("aten::neg", {x}), dim_list({2, 2, 3})});
  Node* y = g.call("aten::view", {g.call("aten::mul.Tensor", {split, w}), dim_list({2, 6})});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  std::vector<float> in = iota(12), weights = {1, 10, 100}, out(12);
  Launch run(g.env, *l);
  run.bind(x, in);
  run.bind(w, weights);
  run.bind(y, out);
  run.run();
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(out[i], -in[i] * weights[i % 3]) << i;
}

TEST(LowerViews, ReshapeAcrossAnAxisIsRefused) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {4, 6});
  Node* t = g.call("aten::t", {g.call("aten::neg", {x})});
  Node* y = g.call("aten::add.Tensor", {g.call("aten::reshape", {t, dim_list({3, 8})}), 1, 1});
  EXPECT_NE(g.reason({y}).find("affine"), std::string::npos) << g.reason({y});
}

TEST(LowerViews, ExpandAndBroadcastOfAView) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {3, 1});
  Node* e = g.call("aten::expand", {g.call("aten::exp", {x}), dim_list({-1, 2}), false});
  Node* y = g.call("aten::mul.Tensor", {e, 1});
  const std::vector<float> out = run_one(g, x, {0, 1, 2}, y, 6);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[4], out[5]);
}

TEST(LowerViews, SqueezedRowResult) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {3, 4});
  Node* m = g.call("aten::amax", {x, dim_list({1}), true});
  Node* s = g.call("aten::squeeze.dim", {m, 1});
  Node* y = g.call("aten::neg", {s});
  EXPECT_EQ(run_one(g, x, iota(12), y, 3), (std::vector<float>{-3, -7, -11}));
}

}  // namespace
}  // namespace fxjit::testing
