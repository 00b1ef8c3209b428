// Types of results; the expectations are eager's.
#include "ops/infer.h"

#include <gtest/gtest.h>

#include "fxjit/fx/graph.h"
#include "ops/aten_target.h"
#include "ops/registry.h"

namespace fxjit::ops {
namespace {

using fx::Argument;

class Infer : public ::testing::Test {
 protected:
  ShapeEnv env;
  fx::GraphPtr graph = fx::Graph::create();

  fx::Node* tensor(DType t, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides = {}) {
    auto type = std::make_shared<TensorType>();
    type->dtype = t;
    for (int64_t s : sizes) type->sizes.push_back(env.constant(s));
    for (int64_t s : strides) type->strides.push_back(env.constant(s));
    if (strides.empty()) type->strides = contiguous_strides(env, type->sizes);
    return with_type(type);
  }
  fx::Node* symbolic(const std::vector<int64_t>& hints) {
    auto type = std::make_shared<TensorType>();
    for (size_t d = 0; d < hints.size(); ++d) {
      type->sizes.push_back(env.symbol({SymSource::Size, count_, static_cast<int32_t>(d)}, hints[d]));
    }
    type->strides = contiguous_strides(env, type->sizes);
    return with_type(type);
  }
  fx::Node* with_type(TensorTypePtr type) {
    fx::Node* n = graph->placeholder("x" + std::to_string(count_++));
    n->set_tensor_type(std::move(type));
    return n;
  }
  // "f32[2, 3] (3, 1)", or the reason.
  std::string type_of(const char* schema, std::vector<Argument> args) {
    fx::Node* n = graph->call_function(fx::make_ref<AtenTarget>(schema), Argument::tuple(args));
    auto type = infer_type(env, *n);
    return type ? to_string(env, **type) : type.reason();
  }
  int32_t count_ = 0;
};

Argument list(std::initializer_list<Argument> items) { return Argument::list(items); }

TEST_F(Infer, PointwiseResults) {
  fx::Node* last = tensor(DType::Float32, {2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_EQ(type_of("aten::relu", {last}), "f32[2, 3, 4, 5] (60, 1, 15, 3)");
  EXPECT_EQ(type_of("aten::add.Tensor", {last, 1, 1}), "f32[2, 3, 4, 5] (60, 1, 15, 3)");
  EXPECT_EQ(type_of("aten::gt.Scalar", {last, 0.5}), "bool[2, 3, 4, 5] (60, 1, 15, 3)");
  EXPECT_EQ(type_of("aten::add.Tensor", {tensor(DType::Int32, {3, 1}), tensor(DType::Float16, {4}), 1}),
            "f16[3, 4] (4, 1)");
  EXPECT_EQ(type_of("aten::div.Tensor", {tensor(DType::Int32, {3}), 2}), "f32[3] (1)");
  EXPECT_EQ(type_of("aten::div.Tensor_mode", {tensor(DType::Int32, {3}), 2, "trunc"}), "i32[3] (1)");
  EXPECT_EQ(type_of("aten::where.ScalarOther", {tensor(DType::Bool, {3}), tensor(DType::Float16, {3}), 1.0}),
            "f16[3] (1)");
  EXPECT_EQ(type_of("aten::clamp", {tensor(DType::Int64, {3}), 0.5, Argument()}), "f32[3] (1)");
  EXPECT_EQ(type_of("aten::pow.Tensor_Scalar", {tensor(DType::Int8, {3}), 2}), "i8[3] (1)");
  EXPECT_EQ(type_of("aten::leaky_relu", {tensor(DType::Float16, {3}), 0.1}), "f16[3] (1)");
}

TEST_F(Infer, SizesThatDoNotBroadcast) {
  EXPECT_EQ(type_of("aten::mul.Tensor", {tensor(DType::Float32, {3}), tensor(DType::Float32, {4})}),
            "sizes 3 and 4 do not broadcast");
}

TEST_F(Infer, EqualSizesOfSymbolsAreGuarded) {
  fx::Node* a = symbolic({6, 5});
  const size_t before = env.guards().size();
  EXPECT_EQ(type_of("aten::mul.Tensor", {a, symbolic({6, 5})}), "f32[s0, s1] (s1, 1)");
  EXPECT_EQ(env.guards().size(), before) << "equal hints are one symbol";
  EXPECT_EQ(type_of("aten::mul.Tensor", {a, tensor(DType::Float32, {6, 5})}), "f32[6, 5] (5, 1)");
  EXPECT_GT(env.guards().size(), before);
}

TEST_F(Infer, CopiesAndCasts) {
  fx::Node* odd = tensor(DType::Float32, {4, 1, 3}, {3, 100, 1});
  fx::Node* sparse = tensor(DType::Float32, {2, 3, 4}, {24, 8, 2});
  fx::Node* expanded = tensor(DType::Float32, {3, 4}, {1, 0});
  EXPECT_EQ(type_of("aten::clone", {odd, Argument()}), "f32[4, 1, 3] (3, 100, 1)");
  EXPECT_EQ(type_of("aten::relu", {odd}), "f32[4, 1, 3] (3, 3, 1)");
  EXPECT_EQ(type_of("aten::clone", {sparse, fx::MemoryFormat::Preserve}), "f32[2, 3, 4] (12, 4, 1)");
  EXPECT_EQ(type_of("aten::clone", {expanded, Argument()}), "f32[3, 4] (4, 1)");
  EXPECT_EQ(type_of("aten::to.dtype", {sparse, DType::Float16, false, false, Argument()}), "f16[2, 3, 4] (12, 4, 1)");
  EXPECT_EQ(type_of("aten::to.dtype", {sparse, DType::Float32, false, false, Argument()}), "f32[2, 3, 4] (24, 8, 2)");
  EXPECT_EQ(type_of("aten::contiguous", {expanded, fx::MemoryFormat::Contiguous}), "f32[3, 4] (4, 1)");
  EXPECT_EQ(type_of("aten::masked_fill.Scalar", {tensor(DType::Float32, {5, 4}, {1, 5}), tensor(DType::Bool, {1}), 0}),
            "f32[5, 4] (4, 1)");
  EXPECT_EQ(type_of("aten::zeros_like", {expanded, DType::Int64, Argument(), Argument(), Argument(), Argument()}),
            "i64[3, 4] (4, 1)");
}

TEST_F(Infer, Reductions) {
  fx::Node* x = tensor(DType::Int32, {2, 3, 4});
  EXPECT_EQ(type_of("aten::sum.dim_IntList", {x, list({-1}), false, Argument()}), "i64[2, 3] (3, 1)");
  EXPECT_EQ(type_of("aten::sum.dim_IntList", {x, list({0, 2}), true, DType::Float32}), "f32[1, 3, 1] (3, 1, 1)");
  EXPECT_EQ(type_of("aten::sum", {x, Argument()}), "i64[] ()");
  EXPECT_EQ(type_of("aten::amax", {x, list({}), false}), "i32[] ()");
  EXPECT_EQ(type_of("aten::any.dim", {x, 1, true}), "bool[2, 1, 4] (4, 4, 1)");
  EXPECT_EQ(type_of("aten::mean.dim", {x, list({1}), false, Argument()}), "aten::mean.dim of integers");
  EXPECT_EQ(type_of("aten::sum.dim_IntList", {x, list({3}), false, Argument()}),
            "aten::sum.dim_IntList: dimension 3 is out of range");
}

TEST_F(Infer, Views) {
  fx::Node* x = tensor(DType::Float32, {2, 3, 4});
  EXPECT_EQ(type_of("aten::permute", {x, list({2, 0, 1})}), "f32[4, 2, 3] (1, 12, 4)");
  EXPECT_EQ(type_of("aten::transpose.int", {x, 0, -1}), "f32[4, 3, 2] (1, 4, 12)");
  EXPECT_EQ(type_of("aten::unsqueeze", {x, 1}), "f32[2, 1, 3, 4] (12, 12, 4, 1)");
  EXPECT_EQ(type_of("aten::unsqueeze", {x, -1}), "f32[2, 3, 4, 1] (12, 4, 1, 1)");
  EXPECT_EQ(type_of("aten::squeeze.dim", {tensor(DType::Float32, {2, 1, 3}), 1}), "f32[2, 3] (3, 1)");
  EXPECT_EQ(type_of("aten::squeeze.dim", {x, 1}), "f32[2, 3, 4] (12, 4, 1)");
  EXPECT_EQ(type_of("aten::select.int", {x, 1, -1}), "f32[2, 4] (12, 1)");
  EXPECT_EQ(type_of("aten::slice.Tensor", {x, 2, 1, INT64_MAX, 2}), "f32[2, 3, 2] (12, 4, 2)");
  EXPECT_EQ(type_of("aten::slice.Tensor", {x, 1, -2, 100, 1}), "f32[2, 2, 4] (12, 4, 1)");
  EXPECT_EQ(type_of("aten::expand", {tensor(DType::Float32, {3, 1}), list({2, -1, 4}), false}),
            "f32[2, 3, 4] (0, 1, 0)");
  EXPECT_EQ(type_of("aten::view", {x, list({6, -1})}), "f32[6, 4] (4, 1)");
  EXPECT_EQ(type_of("aten::flatten.using_ints", {x, 1, -1}), "f32[2, 12] (12, 1)");
  EXPECT_EQ(type_of("aten::unflatten.int", {x, 2, list({2, -1})}), "f32[2, 3, 2, 2] (12, 4, 2, 1)");
}

TEST_F(Infer, ViewsThatMemoryDoesNotAllow) {
  fx::Node* t = tensor(DType::Float32, {3, 4}, {1, 3});
  EXPECT_EQ(type_of("aten::view", {t, list({12})}), "aten::view: the memory does not allow a view of these sizes");
  EXPECT_EQ(type_of("aten::reshape", {t, list({12})}), "f32[12] (1)") << "a copy";
  EXPECT_EQ(type_of("aten::view", {t, list({3, 2, 2})}), "f32[3, 2, 2] (1, 6, 3)");
  EXPECT_EQ(type_of("aten::view", {t, list({5, -1})}), "aten::view: the sizes do not fit");
}

TEST_F(Infer, ViewsOfSymbols) {
  fx::Node* x = symbolic({6, 5, 8});
  EXPECT_EQ(type_of("aten::view", {x, list({-1, 8})}), "f32[(s0*s1*s2 // 8), 8] (8, 1)");
  EXPECT_EQ(type_of("aten::flatten.using_ints", {symbolic({6, 5, 7}), 0, 1}), "f32[s0*s1, s3] (s3, 1)");
  EXPECT_EQ(type_of("aten::slice.Tensor", {x, 0, 1, INT64_MAX, 1}), "f32[(s0 + -1), s1, s2] (s1*s2, s2, 1)");
}

TEST_F(Infer, LinearAndWhatHasNoRule) {
  fx::Node* w = tensor(DType::Float32, {7, 4});
  EXPECT_EQ(type_of("aten::linear", {tensor(DType::Float32, {2, 3, 4}), w, Argument()}), "f32[2, 3, 7] (21, 7, 1)");
  EXPECT_EQ(type_of("aten::nonzero", {w}), "aten::nonzero has no type rule");
}

}  // namespace
}  // namespace fxjit::ops
