// Groups of elementwise operators, and how their spaces, scalars and types come out.
#include <gtest/gtest.h>

#include <cmath>

#include "graph_builder.h"

namespace fxjit::testing {
namespace {

TEST(Lower, ChainOverContiguousTensorsIsOneAxis) {
  TypedGraph g;
  Node* x = g.symbolic(DType::Float16, {6, 5});
  Node* wide = g.call("aten::to.dtype", {x, DType::Float32, false, false, Argument()});
  Node* s = g.call("aten::sigmoid", {wide});
  Node* y = g.call("aten::to.dtype", {s, DType::Float16, false, false, Argument()});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  EXPECT_EQ(kernel::print(l->kernel),
            "kernel\n  axes parallel\n  b0 = in f16 [unit]\n  b1 = out f16 [unit]\n  %0 = load b0 : f16\n"
            "  %1 = cast %0 : f32\n  %2 = sigmoid %1 : f32\n  %3 = cast %2 : f16\n  store b1, %3\n");
  EXPECT_EQ(g.env.to_string(l->extents[0]), "s0*s1");
  EXPECT_EQ(l->buffers[0].node, x);
  EXPECT_EQ(l->buffers[1].node, y);
}

TEST(Lower, SizesNamesAndNumbersAreNoPartOfTheKernel) {
  auto make = [](int64_t n, double factor) {
    TypedGraph g;
    Node* x = g.input(DType::Float32, {n});
    Node* y = g.call("aten::mul.Tensor", {x, factor});
    const Result<Lowered> l = g.lower({y});
    EXPECT_EQ(l->scalars.at(0).bits, ops::Value::of(factor).bits);
    return kernel::print(l->kernel);
  };
  EXPECT_EQ(make(100, 3.5), make(7, 0.1));
}

TEST(Lower, BroadcastsRowsAndColumns) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {2, 3});
  Node* row = g.input(DType::Float32, {3});
  Node* column = g.input(DType::Float32, {2, 1});
  Node* y = g.call("aten::add.Tensor", {g.call("aten::mul.Tensor", {x, row}), column, 1});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  EXPECT_EQ(kernel::print(l->kernel),
            "kernel\n  axes parallel, parallel\n  b0 = in f32 [any, unit]\n  b1 = in f32 [zero, unit]\n"
            "  b2 = in f32 [unit, zero]\n  b3 = out f32 [any, unit]\n  %0 = load b0 : f32\n  %1 = load b1 : f32\n"
            "  %2 = mul %0, %1 : f32\n  %3 = load b2 : f32\n  %4 = add %2, %3 : f32\n  store b3, %4\n");
  std::vector<float> a = iota(6), b = {1, 10, 100}, c = {5, 7}, out(6);
  Launch run(g.env, *l);
  run.bind(x, a);
  run.bind(row, b);
  run.bind(column, c);
  run.bind(y, out);
  run.run();
  EXPECT_EQ(out, (std::vector<float>{5, 15, 205, 10, 47, 507}));
}

TEST(Lower, ChannelsLastRunsAlongTheChannels) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {2, 3, 4, 5}, {60, 1, 15, 3});
  Node* scale = g.input(DType::Float32, {1, 3, 1, 1});
  Node* relu = g.call("aten::relu", {x});
  EXPECT_EQ(kernel::print(g.lower({relu})->kernel),
            "kernel\n  axes parallel\n  b0 = in f32 [unit]\n  b1 = out f32 [unit]\n  %0 = load b0 : f32\n"
            "  %1 = relu %0 : f32\n  store b1, %1\n");
  Node* y = g.call("aten::mul.Tensor", {relu, scale});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  ASSERT_EQ(l->extents.size(), 2u);
  EXPECT_EQ(g.env.hint(l->extents[0]), 40);
  EXPECT_EQ(g.env.hint(l->extents[1]), 3);
  EXPECT_EQ(l->kernel.buffers[1].strides.back(), kernel::StrideClass::Unit) << "the channels of scale are innermost";
}

TEST(Lower, TransposedOperandKeepsItsStride) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {3, 4});
  Node* z = g.input(DType::Float32, {4, 3});
  Node* y = g.call("aten::sub.Tensor", {x, g.call("aten::t", {z}), 1});
  const Result<Lowered> l = g.lower({y});
  ASSERT_TRUE(l.ok()) << l.reason();
  std::vector<float> a(12, 0), b = iota(12), out(12);
  Launch run(g.env, *l);
  run.bind(x, a);
  run.bind(z, b);
  run.bind(y, out);
  run.run();
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) EXPECT_EQ(out[static_cast<size_t>(4 * i + j)], -static_cast<float>(3 * j + i));
  }
}

TEST(Lower, SeveralOutputs) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {8});
  Node* a = g.call("aten::exp", {x});
  Node* b = g.call("aten::gt.Scalar", {a, 1.0});
  const Result<Lowered> l = g.lower({a, b});
  ASSERT_TRUE(l.ok()) << l.reason();
  EXPECT_EQ(kernel::print(l->kernel),
            "kernel\n  axes parallel\n  b0 = in f32 [unit]\n  b1 = out f32 [unit]\n  b2 = out bool [unit]\n"
            "  %0 = load b0 : f32\n  %1 = exp %0 : f32\n  %2 = const 1 : f32\n  %3 = gt %1, %2 : bool\n"
            "  store b1, %1\n  store b2, %3\n");
}

TEST(Lower, PromotionCastsOperands) {
  TypedGraph g;
  Node* i = g.input(DType::Int64, {4});
  Node* h = g.input(DType::Float16, {4});
  EXPECT_NE(g.text({g.call("aten::add.Tensor", {i, h, 1})}).find("%1 = cast %0 : f16"), std::string::npos)
      << g.text({g.group.back()});
  EXPECT_EQ(g.call("aten::div.Tensor", {i, 2})->tensor_type()->dtype, DType::Float32);
  EXPECT_NE(g.text({g.group.back()}).find(": f32"), std::string::npos);
}

TEST(Lower, NumbersBesideHalfTypes) {
  TypedGraph g;
  Node* x = g.input(DType::BFloat16, {4});
  // A factor is not rounded to the half type, a summand is: that is eager.
  EXPECT_NE(g.text({g.call("aten::mul.Tensor", {x, 0.1})}).find("scalar s0 : f32"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::add.Tensor", {x, 0.1, 1})}).find("scalar s0 : bf16"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::leaky_relu", {x, 0.1})}).find("scalar s0 : f32"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::clamp", {x, 0.1, 0.7})}).find("scalar s1 : bf16"), std::string::npos);
}

TEST(Lower, AlphaIsOneRounding) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {4});
  EXPECT_NE(g.text({g.call("aten::add.Tensor", {x, x, 0.3})}).find("muladd %0, %0, %1"), std::string::npos);
  Node* sub = g.call("aten::sub.Tensor", {x, x, 0.3});
  EXPECT_EQ(g.lower({sub})->scalars[0].bits, ops::Value::of(-0.3).bits);
}

TEST(Lower, PowersWithKernelsOfTheirOwn) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {4});
  Node* h = g.input(DType::Float16, {4});
  Node* i = g.input(DType::Int32, {4});
  EXPECT_NE(g.text({g.call("aten::pow.Tensor_Scalar", {x, 2})}).find("square"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::pow.Tensor_Scalar", {x, 0.5})}).find("sqrt"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::pow.Tensor_Scalar", {x, 0})}).find("const 1"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::pow.Tensor_Scalar", {x, 2.5})}).find("pow %0, %1"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::pow.Tensor_Scalar", {h, 3})}).find("square %1 : f32"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::pow.Tensor_Scalar", {i, 3})}).find("mul %1, %0 : i32"), std::string::npos);
  EXPECT_NE(g.reason({g.call("aten::pow.Tensor_Scalar", {i, -1})}).find("integer power"), std::string::npos);
}

TEST(Lower, BoolHasLogicOnly) {
  TypedGraph g;
  Node* p = g.input(DType::Bool, {4});
  Node* q = g.input(DType::Bool, {4});
  EXPECT_NE(g.text({g.call("aten::add.Tensor", {p, q, 1})}).find("logical_or"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::mul.Tensor", {p, q})}).find("logical_and"), std::string::npos);
  EXPECT_NE(g.text({g.call("aten::lt.Tensor", {p, q})}).find("lt %1, %3 : bool"), std::string::npos);
  Node* x = g.input(DType::Float32, {4});
  EXPECT_NE(g.text({g.call("aten::logical_and", {x, p})}).find("cast %0 : bool"), std::string::npos);
}

TEST(Lower, ZeroDimensionalTensors) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {});
  Node* y = g.call("aten::exp", {x});
  EXPECT_EQ(g.text({y}),
            "kernel\n  axes parallel\n  b0 = in f32 [zero]\n  b1 = out f32 [unit]\n  %0 = load b0 : f32\n"
            "  %1 = exp %0 : f32\n  store b1, %1\n");
}

TEST(Lower, RefusesWithReasons) {
  TypedGraph g;
  Node* d = g.input(DType::Float64, {4});
  Node* i = g.input(DType::Int64, {4});
  Node* u = g.input(DType::UInt8, {4});
  EXPECT_EQ(g.reason({g.call("aten::exp", {d})}), "exp has no code for f64");
  EXPECT_NE(g.reason({g.call("aten::div.Tensor_mode", {i, i, "trunc"})}).find("div_trunc has no code for i64"),
            std::string::npos);
  EXPECT_NE(g.reason({g.call("aten::div.Tensor_mode", {d, d, "floor"})}).find("floor"), std::string::npos);
  EXPECT_NE(g.reason({g.call("aten::clamp", {u, -1, 300})}).find("a number that u8 cannot hold"), std::string::npos);
  Node* h = g.input(DType::Float16, {4});
  EXPECT_NE(g.reason({g.call("aten::clamp", {h, 0.0, 65510.0})}).find("cannot hold"), std::string::npos)
      << "it would round to a number of the type, but eager refuses it";
  Node* a = g.call("aten::exp", {g.input(DType::Float32, {4})});
  Node* b = g.call("aten::exp", {g.input(DType::Float32, {3})});
  EXPECT_NE(g.reason({a, b}).find("not laid over the space"), std::string::npos);
}

TEST(Lower, CanFuseAsksForTheNodeAlone) {
  TypedGraph g;
  Node* x = g.input(DType::Float32, {4});
  Node* d = g.input(DType::Float64, {4});
  EXPECT_TRUE(kernel::can_fuse(g.env, g.call("aten::exp", {x})).ok());
  EXPECT_FALSE(kernel::can_fuse(g.env, g.call("aten::exp", {d})).ok());
  EXPECT_FALSE(kernel::can_fuse(g.env, x).ok());
}

}  // namespace
}  // namespace fxjit::testing
