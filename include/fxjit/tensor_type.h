// What the typed graph knows of a tensor: everything but its data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fxjit/dtype.h"
#include "fxjit/sym.h"

namespace fxjit::inline v0 {

enum class DeviceKind : uint8_t { CPU, CUDA, Meta, Other };

struct TensorType {
  DType dtype = DType::Float32;
  DeviceKind device = DeviceKind::CPU;
  bool requires_grad = false;
  bool is_wrapped_number = false;  // a Python scalar as 0-dim tensor: it does not promote
  std::vector<Dim> sizes;
  // One expression per dimension. A dense layout is expressed by products of sizes, a broadcast dimension by the
  // constant 0, anything else by a symbol of its own: the stride class is the form of these expressions.
  std::vector<Dim> strides;

  size_t rank() const { return sizes.size(); }
  bool operator==(const TensorType&) const = default;
};

using TensorTypePtr = std::shared_ptr<const TensorType>;

// Row-major strides for `sizes`.
FXJIT_API std::vector<Dim> contiguous_strides(ShapeEnv& env, const std::vector<Dim>& sizes);

// True where each stride of a dimension of more than one element is the row-major one; decided structurally.
FXJIT_API bool is_contiguous(ShapeEnv& env, const TensorType& t);

// "f16[s0, 384] (s1, 1)"
FXJIT_API std::string to_string(const ShapeEnv& env, const TensorType& t);

}  // namespace fxjit::inline v0
