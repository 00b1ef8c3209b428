// Every schema of the operator tables against eager: the type of the result, whether it is refused exactly where it
// must be, and its values; over all element types.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "eager_harness.h"
#include "ops/registry.h"
#include "support/format.h"

namespace fxjit::testing {
namespace {

constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int64,
                            DType::Int32,   DType::Int16,   DType::Int8,    DType::UInt8,    DType::Bool};

// Schema and arguments; several lines a schema. What the rows of elementwise.def take is made below.
constexpr const char* kCalls[] = {
    "aten::add.Tensor | x y",
    "aten::add.Tensor | x row 3",
    "aten::add.Tensor | xt col 0.3",
    "aten::add.Tensor | x 0.3",
    "aten::add.Tensor | x 7",
    "aten::add.Tensor | x 2 0.5",
    "aten::add.Tensor | x z",
    "aten::add.Tensor | z x",
    "aten::add.Tensor | h x 0.3",
    "aten::add.Tensor | x true",
    "aten::add.Tensor | x y true",
    "aten::add.Tensor | cl 1",
    "aten::add.Tensor | x 300",
    "aten::add.Scalar | x 0.3",
    "aten::add.Scalar | x 2 2",
    "aten::sub.Tensor | x y",
    "aten::sub.Tensor | x i",
    "aten::sub.Tensor | i x 2",
    "aten::sub.Tensor | x 0.3 0.7",
    "aten::sub.Tensor | x m",
    "aten::sub.Scalar | x 2",
    "aten::subtract.Tensor | x y 2",
    "aten::subtract.Scalar | x 0.25",
    "aten::rsub.Tensor | x y 2",
    "aten::rsub.Scalar | x 1",
    "aten::rsub.Scalar | x 0.3 0.7",
    "aten::div.Tensor_mode | x 0.3 None",
    "aten::div.Tensor_mode | x 0.3 'trunc'",
    "aten::div.Tensor_mode | x y 'floor'",
    "aten::div.Tensor_mode | i 2 'trunc'",
    "aten::div.Scalar_mode | x 0.7 'trunc'",
    "aten::div.Scalar_mode | x 3 None",
    "aten::square | x",
    "aten::pow.Tensor_Scalar | x 2",
    "aten::pow.Tensor_Scalar | x 3",
    "aten::pow.Tensor_Scalar | x 0",
    "aten::pow.Tensor_Scalar | x 1",
    "aten::pow.Tensor_Scalar | x 0.5",
    "aten::pow.Tensor_Scalar | x -0.5",
    "aten::pow.Tensor_Scalar | x -1",
    "aten::pow.Tensor_Scalar | x -2",
    "aten::pow.Tensor_Scalar | x 2.5",
    "aten::pow.Tensor_Scalar | x 4",
    "aten::pow.Tensor_Scalar | x 2.0",
    "aten::pow.Tensor_Scalar | x -2.0",
    "aten::pow.Tensor_Tensor | d x",
    "aten::pow.Tensor_Tensor | h x",
    "aten::pow.Scalar | 2 x",
    "aten::pow.Scalar | 1 x",
    "aten::clamp | x -1 2",
    "aten::clamp | x 0.3 None",
    "aten::clamp | x None 1.7",
    "aten::clamp | x 2 300",
    "aten::clamp | x 2 -2",
    "aten::clamp | x 0 1e30",
    "aten::clamp | x 0.1 65510.0",
    "aten::clamp.Tensor | x row col",
    "aten::clamp.Tensor | x None z",
    "aten::clamp.Tensor | x zi None",
    "aten::clip | x -1 1",
    "aten::clip.Tensor | x row None",
    "aten::clamp_min | x 1",
    "aten::clamp_min | x 0.3",
    "aten::clamp_min.Tensor | x row",
    "aten::clamp_max | x 1",
    "aten::clamp_max | x 0.3",
    "aten::clamp_max.Tensor | x col",
    "aten::hardtanh | x",
    "aten::hardtanh | x -0.3 0.7",
    "aten::hardtanh | x 1 5",
    "aten::relu6 | x",
    "aten::gelu | x",
    "aten::gelu | x 'tanh'",
    "aten::gelu | cl 'none'",
    "aten::leaky_relu | x",
    "aten::leaky_relu | x 0.3",
    "aten::elu | x",
    "aten::elu | x 0.7 1.3 0.9",
    "aten::celu | x",
    "aten::celu | x 0.7",
    "aten::selu | x",
    "aten::softplus | x",
    "aten::softplus | x 2 0.5",
    "aten::threshold | x 0.3 7",
    "aten::threshold | x 1 2.5",
    "aten::threshold | x 1 2",
    "aten::addcmul | x y w",
    "aten::addcmul | x y w 0.3",
    "aten::addcmul | x row col 2",
    "aten::addcmul | x h y",
    "aten::addcdiv | x y w",
    "aten::addcdiv | x y w 0.3",
    "aten::lerp.Scalar | x y 0.3",
    "aten::lerp.Scalar | x y 0.7",
    "aten::lerp.Scalar | x h 0.7",
    "aten::lerp.Tensor | x y w",
    "aten::lerp.Tensor | x y zh",
    "aten::masked_fill.Scalar | x m 2",
    "aten::masked_fill.Scalar | x mrow 0.5",
    "aten::masked_fill.Scalar | xt m 300",
    "aten::masked_fill.Scalar | row m 1",
    "aten::masked_fill.Tensor | x m z",
    "aten::masked_fill.Tensor | x m zi",
    "aten::clone | x",
    "aten::clone | xt preserve",
    "aten::clone | xt contiguous",
    "aten::contiguous | xt contiguous",
    "aten::detach | x",
    "aten::alias | x",
    "aten::positive | x",
    "aten::lift_fresh | x",
    "aten::to.dtype | x f16",
    "aten::to.dtype | xt f32",
    "aten::to.dtype | x i64 false true",
    "aten::to.dtype | x u8",
    "aten::to.dtype | x bool",
    "aten::to.dtype | h i16",
    "aten::to.dtype_layout | xt f64",
    "aten::to.other | x h",
    "aten::_to_copy | xt",
    "aten::to.device | x cpu f16",
    "aten::to.device | xt cpu f32 false true",
    "aten::_to_copy | x bf16",
    "aten::type_as | x i",
    "aten::zeros_like | xt",
    "aten::ones_like | x f16",
    "aten::full_like | x 3",
    "aten::full_like | x 0.5",
    "aten::full_like | x 300",
    "aten::fill.Scalar | xt 2",
    "aten::sum | x",
    "aten::sum | x f32",
    "aten::sum.dim_IntList | x [1] false",
    "aten::sum.dim_IntList | x [-1] true f64",
    "aten::sum.dim_IntList | xt [0]",
    "aten::sum.dim_IntList | big [2,3]",
    "aten::sum.dim_IntList | cl [1] true",
    "aten::sum.dim_IntList | x [0]",
    "aten::sum.dim_IntList | x [1] false i32",
    "aten::sum.dim_IntList | x [1] false f16",
    "aten::mean | x",
    "aten::mean.dim | x [1] true",
    "aten::mean.dim | x [1] false f32",
    "aten::mean.dim | big [3]",
    "aten::prod | x",
    "aten::prod.dim_int | x 1",
    "aten::prod.dim_int | x -1 true f32",
    "aten::amax | x [1]",
    "aten::amax | x [] true",
    "aten::amax | big [1,2,3]",
    "aten::max | x",
    "aten::amin | x [-1] true",
    "aten::min | x",
    "aten::any | x",
    "aten::any.dim | x 1 true",
    "aten::any.dims | x [1]",
    "aten::all | x",
    "aten::all.dim | x 1",
    "aten::all.dims | big [2,3] true",
    "aten::permute | big [3,1,0,2]",
    "aten::transpose.int | big 1 -1",
    "aten::t | x",
    "aten::t | row",
    "aten::swapaxes | big 0 2",
    "aten::swapdims | x 0 1",
    "aten::numpy_T | big",
    "aten::mT | big",
    "aten::expand | col [2,-1,4]",
    "aten::expand | row [3,5]",
    "aten::expand_as | row x",
    "aten::broadcast_to | row [3,5]",
    "aten::view | x [5,3]",
    "aten::view | x [-1]",
    "aten::view | xt [15]",
    "aten::_unsafe_view | x [15]",
    "aten::reshape | xt [15]",
    "aten::reshape | big [6,-1]",
    "aten::flatten.using_ints | big 1 2",
    "aten::flatten.using_ints | big",
    "aten::unflatten.int | x 1 [5,1]",
    "aten::view_as | x y",
    "aten::reshape_as | x y",
    "aten::ravel | x",
    "aten::unsqueeze | x 1",
    "aten::unsqueeze | xt -1",
    "aten::squeeze | col",
    "aten::squeeze.dim | col 1",
    "aten::squeeze.dim | x 1",
    "aten::squeeze.dims | col [0,1]",
    "aten::select.int | x 0 -1",
    "aten::select.int | big 2 1",
    "aten::slice.Tensor | x 1 1 None 2",
    "aten::slice.Tensor | x 0 -2 100",
    "aten::slice.Tensor | x 1 4 2",
    "aten::narrow | x 1 1 3",
    "aten::linear | x y",
};

std::vector<CallText> all_calls() {
  std::vector<CallText> out;
  for (std::string_view line : kCalls) {
    const size_t bar = line.find(" | ");
    out.push_back({std::string(line.substr(0, bar)), std::string(line.substr(bar + 3))});
  }
  for (const ops::OpRow& row : ops::rows()) {
    for (std::string_view schema : support::split(row.aten, ' ')) {
      if (row.arity == 3 && !schema.starts_with("aten::where")) continue;
      std::vector<const char*> arguments = {"x", "xt", "cl"};
      if (row.arity == 2) arguments = {"x y", "xt row", "x z", "x zi", "z x", "x h", "i x", "x m", "col row"};
      const bool second_is_number = schema.ends_with(".Scalar") || schema.ends_with("_Scalar");
      if (second_is_number) arguments = {"x 2", "x 0.3", "x true", "x 300", "xt -1"};
      if (schema == "aten::where.self") arguments = {"m x y", "mrow x z", "m x h"};
      if (schema == "aten::where.ScalarSelf") arguments = {"m 2 x", "m 0.3 x"};
      if (schema == "aten::where.ScalarOther") arguments = {"m x 2", "m x 0.3", "m x 300"};
      if (schema == "aten::where.Scalar") arguments = {"m 1 2", "m 0.5 1"};
      for (const char* a : arguments) out.push_back({std::string(schema), a});
    }
  }
  return out;
}

TEST(Schemas, AgreeWithEager) {
  std::map<Outcome::Kind, int> counts;
  std::set<std::string> seen, lowered;
  std::map<std::string, int> reasons;
  for (const CallText& call : all_calls()) {
    seen.insert(call.schema);
    for (DType t : kTypes) {
      const Outcome o = try_call(call, t);
      ++counts[o.kind];
      EXPECT_NE(o.kind, Outcome::Disagreed)
          << call.schema << " | " << call.arguments << " on " << to_text(t) << ": " << o.reason;
      if (o.kind == Outcome::Agreed) lowered.insert(call.schema);
      if (o.kind == Outcome::LeftToAten) ++reasons[call.schema + " | " + call.arguments + ": " + o.reason];
    }
  }
  for (std::string_view schema : ops::all_schemas()) {
    EXPECT_TRUE(seen.contains(std::string(schema))) << schema << " is not tried";
    // Alone, an expanded tensor has elements that share memory, so it is never what a kernel writes.
    const bool never = ops::find_schema(schema)->kind == ops::OpClass::Library || schema == "aten::broadcast_to" ||
                       schema.starts_with("aten::expand");
    if (never) continue;
    EXPECT_TRUE(lowered.contains(std::string(schema))) << schema << " never makes a kernel";
  }
  std::cout << counts[Outcome::Agreed] << " agree, " << counts[Outcome::LeftToAten] << " are left to ATen, "
            << counts[Outcome::BothRefuse] << " raise\n";
  if (std::getenv("FXJIT_LOG") != nullptr) {
    for (const auto& [reason, n] : reasons) std::cout << "  left to ATen: " << n << " x " << reason << "\n";
  }
}

}  // namespace
}  // namespace fxjit::testing
