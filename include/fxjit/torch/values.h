// Tensors and torch's constants where a graph takes an argument: `gm({x, y})`, `x.to(at::kHalf)` on a Proxy.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

#include "fxjit/fx/argument.h"
#include "fxjit/fx/callable.h"

namespace fxjit::inline v0 {

// A value that holds this tensor; None for an undefined one.
FXJIT_API fx::Value to_value(const at::Tensor& t);
// The tensor in `v`. TypeError for any other value.
FXJIT_API at::Tensor to_tensor(const fx::Value& v);

// An ATen operator as the target of a call_function node: by schema name ("aten::add.Tensor"), or by its base name
// ("add"), in which case the overload is chosen at each call as torch's Python functions do. NameError for an operator
// that torch does not have.
FXJIT_API fx::CallableRef aten(std::string_view name);

namespace fx {

template <>
struct ArgumentTraits<at::Tensor> {
  static Argument convert(const at::Tensor& t) { return to_value(t); }
  static std::optional<at::Tensor> extract(const Argument& a) {
    if (a.is_object()) return to_tensor(a);
    return std::nullopt;
  }
};

template <>
struct ArgumentTraits<c10::ScalarType> {
  // Types that fxjit has no name for (float8, quantised) are a TypeError.
  FXJIT_API static Argument convert(c10::ScalarType t);
};

template <>
struct ArgumentTraits<c10::Device> {
  static Argument convert(c10::Device d) { return fx::Device{static_cast<int8_t>(d.type()), d.index()}; }
};

template <>
struct ArgumentTraits<c10::MemoryFormat> {
  static Argument convert(c10::MemoryFormat f) { return static_cast<fx::MemoryFormat>(f); }
};

template <>
struct ArgumentTraits<c10::Layout> {
  static Argument convert(c10::Layout l) { return static_cast<fx::Layout>(l); }
};

}  // namespace fx
}  // namespace fxjit::inline v0
