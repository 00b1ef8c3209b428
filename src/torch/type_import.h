// The type of a tensor: sizes and stride class as expressions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "fxjit/sym.h"
#include "fxjit/tensor_type.h"

namespace fxjit::inline v0::torch_ {

// Why a tensor has no TensorType: "sparse_coo layout", "a tensor subclass", … Empty where it has one.
std::string unsupported_reason(const at::Tensor& t);

// The type of input number `input`. Sizes in `dynamic` (one flag a dimension; empty: none) become symbols, the others
// constants. Strides that follow from the dimensions inside them are products of these; a broadcast dimension is the
// constant 0; anything else is a symbol where some size is dynamic, else a constant. Dimensions of size 1 take part
// like any other, since they decide the order in which ATen lays out results. The tensor must be supported.
TensorTypePtr import_input_type(ShapeEnv& env, const at::Tensor& t, int32_t input, std::span<const bool> dynamic = {});

// The same for a recorded value: all sizes and strides as constants.
struct TensorInfo;
TensorTypePtr import_observed_type(ShapeEnv& env, const TensorInfo& info);

}  // namespace fxjit::inline v0::torch_
