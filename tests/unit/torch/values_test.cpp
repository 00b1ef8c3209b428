#include <ATen/core/jit_type.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "torch/aten_call.h"
#include "torch/convert.h"
#include "torch/tensor_object.h"
#include "torch/type_import.h"

namespace fxjit::torch_ {
namespace {

fx::Value round_trip(const fx::Value& v, const c10::TypePtr& type) {
  auto converted = to_ivalue(v, *type);
  EXPECT_TRUE(converted.has_value()) << v.repr();
  return converted ? to_value(*converted, *type) : fx::Value("none");
}

TEST(Values, RoundTripThroughIValue) {
  using fx::Value;
  EXPECT_EQ(round_trip(3, c10::IntType::get()), Value(3));
  EXPECT_EQ(round_trip(true, c10::BoolType::get()), Value(true));
  EXPECT_EQ(round_trip(2.5, c10::FloatType::get()), Value(2.5));
  EXPECT_EQ(round_trip(3, c10::FloatType::get()), Value(3.0));  // an int serves as a float
  EXPECT_EQ(round_trip("abc", c10::StringType::get()), Value("abc"));
  EXPECT_EQ(round_trip(kHalf, c10::ScalarTypeType::get()), Value(kHalf));
  EXPECT_EQ(round_trip(fx::MemoryFormat::ChannelsLast, c10::MemoryFormatType::get()),
            Value(fx::MemoryFormat::ChannelsLast));
  EXPECT_EQ(round_trip(fx::Device{1, 2}, c10::DeviceObjType::get()), Value(fx::Device{1, 2}));
  Value ints = Value::list({1, 2, 3});
  EXPECT_EQ(round_trip(ints, c10::ListType::ofInts()), ints);
  EXPECT_EQ(round_trip(Value::tuple({1, 2}), c10::ListType::ofInts()), Value::list({1, 2}));
  EXPECT_EQ(round_trip({}, c10::OptionalType::create(c10::IntType::get())), Value());
  EXPECT_EQ(round_trip(7, c10::OptionalType::create(c10::IntType::get())), Value(7));
}

TEST(Values, WhatDoesNotFitIsRefused) {
  EXPECT_FALSE(to_ivalue(fx::Value(2.5), *c10::IntType::get()));
  EXPECT_FALSE(to_ivalue(fx::Value("x"), *c10::TensorType::get()));
  EXPECT_FALSE(to_ivalue(fx::Value(2), *c10::TensorType::get(), /*numbers_as_tensors=*/false));
  EXPECT_FALSE(to_ivalue(fx::Value::list({1, 2.5}), *c10::ListType::ofInts()));
  EXPECT_FALSE(to_ivalue(fx::Value::slice(1, 2)));
}

TEST(Values, ANumberAsTensorIsWrapped) {
  for (fx::Value v : {fx::Value(2), fx::Value(2.5), fx::Value(true)}) {
    at::Tensor t = to_ivalue(v, *c10::TensorType::get())->toTensor();
    EXPECT_TRUE(t.unsafeGetTensorImpl()->is_wrapped_number());
    EXPECT_EQ(t.dim(), 0);
    EXPECT_EQ(t.item().toDouble(), v.to_double());
  }
  at::Tensor half = at::ones({2}, c10::ScalarType::Half);
  EXPECT_EQ(half.mul(wrapped_number(2.5)).scalar_type(), c10::ScalarType::Half);
}

TEST(Values, TwoHandlesOfOneTensorAreEqual) {
  at::Tensor t = at::ones({2});
  EXPECT_EQ(from_tensor(t), from_tensor(t));
  EXPECT_FALSE(from_tensor(t) == from_tensor(at::ones({2})));
  EXPECT_TRUE(as_tensor(from_tensor(t)).is_same(t));
  EXPECT_FALSE(as_tensor(fx::Value(1)).defined());
}

TEST(AtenCallable, CallsThroughTheDispatcher) {
  AtenCallable add(*find_operator("aten::add.Tensor"));
  EXPECT_EQ(add.qualified_name(), "aten::add.Tensor");
  EXPECT_EQ(add.base_name(), "add");
  EXPECT_EQ(add.pretty_name(), "torch.ops.aten.add.Tensor");
  EXPECT_FALSE(add.is_impure({}, {}, true));
  at::Tensor x = at::ones({3});
  fx::Value args[] = {from_tensor(x), from_tensor(x)};
  EXPECT_EQ(as_tensor(add.call(args, fx::Value::dict({{"alpha", 2}}))).sum().item<float>(), 9);
  fx::Value scalar_args[] = {from_tensor(x), fx::Value(4)};
  EXPECT_EQ(as_tensor(add.call(scalar_args, {})).sum().item<float>(), 15);
  EXPECT_TRUE(AtenCallable(*find_operator("aten::add_.Tensor")).is_impure({}, {}, false));
  AtenCallable bernoulli(*find_operator("aten::bernoulli"));
  EXPECT_TRUE(bernoulli.is_impure({}, {}, true));
  EXPECT_FALSE(bernoulli.is_impure({}, {}, false));
  EXPECT_FALSE(find_operator("aten::no_such_operator"));
}

TEST(AtenCallable, ErrorsNameTheArgument) {
  AtenCallable add(*find_operator("aten::add.Tensor"));
  fx::Value bad[] = {from_tensor(at::ones({1})), fx::Value("x")};
  try {
    add.call(bad, {});
    FAIL();
  } catch (const TypeError& e) {
    EXPECT_EQ(e.message(), "aten::add.Tensor(): argument 'other' must be Tensor, not str");
  }
  fx::Value one[] = {from_tensor(at::ones({1}))};
  EXPECT_THROW(add.call(one, {}), TypeError);
  fx::Value two[] = {one[0], one[0]};
  EXPECT_THROW(add.call(two, fx::Value::dict({{"gamma", 1}})), TypeError);
}

class TypeImport : public ::testing::Test {
 protected:
  std::string text(const at::Tensor& t, std::vector<uint8_t> dynamic = {}) {
    return to_string(env, *import_type(env, t, 0, dynamic));
  }
  std::string stride(const at::Tensor& t, size_t d, std::vector<uint8_t> dynamic) {
    return env.to_string(import_type(env, t, 0, dynamic)->strides[d]);
  }
  ShapeEnv env;
};

TEST_F(TypeImport, StaticSizesAreConstants) {
  TensorTypePtr type = import_type(env, at::ones({2, 3}, c10::ScalarType::Half), 0);
  EXPECT_EQ(type->dtype, DType::Float16);
  EXPECT_TRUE(env.is_const(type->sizes[0], 2));
  EXPECT_TRUE(env.is_const(type->strides[0], 3));
  EXPECT_TRUE(env.symbols().empty());
}

TEST_F(TypeImport, DenseStridesAreProductsInTheOrderOfTheDimensions) {
  at::Tensor t = at::ones({4, 5, 6});
  TensorTypePtr type = import_type(env, t, 0, std::vector<uint8_t>{1, 1, 1});
  EXPECT_EQ(type->strides, contiguous_strides(env, type->sizes));
  EXPECT_EQ(env.symbols().size(), 3u);
  TensorTypePtr turned = import_type(env, t.permute({2, 0, 1}), 0, std::vector<uint8_t>{1, 1, 1});
  EXPECT_TRUE(env.is_const(turned->strides[0], 1));
  EXPECT_EQ(turned->strides[2], turned->sizes[0]);
  EXPECT_EQ(turned->strides[1], env.mul(turned->sizes[0], turned->sizes[2]));
  for (const SymSource& s : env.symbols()) EXPECT_EQ(s.kind, SymSource::Size);
}

TEST_F(TypeImport, BroadcastAndIrregularStrides) {
  at::Tensor t = at::ones({4, 1, 6}).expand({4, 5, 6});
  TensorTypePtr type = import_type(env, t, 0, std::vector<uint8_t>{1, 1, 1});
  EXPECT_TRUE(env.is_const(type->strides[1], 0));
  EXPECT_EQ(type->strides[0], type->sizes[2]);
  at::Tensor rows = at::ones({4, 10}).slice(1, 0, 6);
  type = import_type(env, rows, 1, std::vector<uint8_t>{1, 1});
  EXPECT_EQ(env.expr(type->strides[0]).kind, SymExpr::Symbol);
  EXPECT_EQ(env.symbols()[static_cast<size_t>(env.expr(type->strides[0]).value)].kind, SymSource::Stride);
  EXPECT_EQ(env.hint(type->strides[0]), 10);
  type = import_type(env, rows, 1);
  EXPECT_TRUE(env.is_const(type->strides[0], 10));
}

TEST_F(TypeImport, SizesOneAndZero) {
  TensorTypePtr type = import_type(env, at::ones({4, 1}), 0, std::vector<uint8_t>{1, 1});
  EXPECT_TRUE(env.is_const(type->sizes[1], 1));
  EXPECT_TRUE(is_contiguous(env, *type));
  type = import_type(env, at::ones({0, 5}), 0, std::vector<uint8_t>{1, 1});
  EXPECT_TRUE(env.is_const(type->sizes[0], 0));
  EXPECT_TRUE(is_contiguous(env, *type));
}

TEST_F(TypeImport, UnsupportedTensorsHaveAReason) {
  EXPECT_EQ(unsupported_reason(at::ones({2})), "");
  EXPECT_EQ(unsupported_reason(at::Tensor()), "an undefined tensor");
  EXPECT_EQ(unsupported_reason(at::ones({2, 2}).to_sparse()), "a tensor whose layout is not strided");
  EXPECT_EQ(unsupported_reason(at::ones({2}, c10::ScalarType::ComplexFloat).conj()), "a lazily conjugated tensor");
}

}  // namespace
}  // namespace fxjit::torch_
