// The type of a tensor: sizes and stride class as expressions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "fxjit/sym.h"
#include "fxjit/tensor_type.h"
#include "torch/tensor_info.h"

namespace fxjit::inline v0::torch_ {

// Why a tensor has no TensorType: "sparse_coo layout", "a tensor subclass", … Empty where it has one.
std::string unsupported_reason(const at::Tensor& t);

// The type of input number `input`. Sizes in `dynamic` (one flag a dimension; empty: none) become symbols, the others
// constants. Strides that follow from the dimensions inside them are products of these; a broadcast dimension is the
// constant 0; anything else is a symbol where some size is dynamic, else a constant. Dimensions of size 1 take part
// like any other, since they decide the order in which ATen lays out results. Without `dynamic` all are constants and
// `input` is not read. The tensor must be supported.
TensorTypePtr import_type(ShapeEnv& env, const TensorInfo& info, int32_t input = -1,
                          std::span<const uint8_t> dynamic = {});
TensorTypePtr import_type(ShapeEnv& env, const at::Tensor& t, int32_t input = -1,
                          std::span<const uint8_t> dynamic = {});

TensorInfo describe(const at::Tensor& t);

}  // namespace fxjit::inline v0::torch_
