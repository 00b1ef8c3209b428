// Element types and devices of the two worlds: the values are equal, so that conversions are casts.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>

#include "fxjit/dtype.h"
#include "fxjit/fx/types.h"
#include "fxjit/tensor_type.h"

namespace fxjit::inline v0::torch_ {

#define FXJIT_SAME_DTYPE(name, c10_name) \
  static_assert(static_cast<int>(DType::name) == static_cast<int>(c10::ScalarType::c10_name));
FXJIT_SAME_DTYPE(UInt8, Byte)
FXJIT_SAME_DTYPE(Int8, Char)
FXJIT_SAME_DTYPE(Int16, Short)
FXJIT_SAME_DTYPE(Int32, Int)
FXJIT_SAME_DTYPE(Int64, Long)
FXJIT_SAME_DTYPE(Float16, Half)
FXJIT_SAME_DTYPE(Float32, Float)
FXJIT_SAME_DTYPE(Float64, Double)
FXJIT_SAME_DTYPE(Complex64, ComplexFloat)
FXJIT_SAME_DTYPE(Complex128, ComplexDouble)
FXJIT_SAME_DTYPE(Bool, Bool)
FXJIT_SAME_DTYPE(BFloat16, BFloat16)
#undef FXJIT_SAME_DTYPE

inline c10::ScalarType to_scalar_type(DType t) { return static_cast<c10::ScalarType>(t); }

// Empty for the types that fxjit has no name for (quantised, float8, …): tensors of these are ATen's alone.
inline std::optional<DType> to_dtype(c10::ScalarType t) {
  switch (static_cast<DType>(t)) {
#define FXJIT_DTYPE(name, value, text, bytes, kind) case DType::name:
    FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
    return static_cast<DType>(t);
  }
  return std::nullopt;
}

inline DeviceKind device_kind(c10::Device d) {
  if (d.is_cpu()) return DeviceKind::CPU;
  if (d.is_cuda()) return DeviceKind::CUDA;
  return d.is_meta() ? DeviceKind::Meta : DeviceKind::Other;
}

inline fx::Device to_device(c10::Device d) { return {static_cast<int8_t>(d.type()), d.index()}; }
inline c10::Device to_c10(fx::Device d) { return {static_cast<c10::DeviceType>(d.type), d.index}; }

}  // namespace fxjit::inline v0::torch_
