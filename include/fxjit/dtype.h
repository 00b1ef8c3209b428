// Element types. The values are those of c10::ScalarType, so that a guard compares one byte; src/torch asserts the
// equality.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fxjit::inline v0 {

// X(name, value, short text, bytes, kind)   kind: f floating, i signed, u unsigned, b bool, c complex
#define FXJIT_FORALL_DTYPES(X)       \
  X(UInt8, 0, "u8", 1, 'u')          \
  X(Int8, 1, "i8", 1, 'i')           \
  X(Int16, 2, "i16", 2, 'i')         \
  X(Int32, 3, "i32", 4, 'i')         \
  X(Int64, 4, "i64", 8, 'i')         \
  X(Float16, 5, "f16", 2, 'f')       \
  X(Float32, 6, "f32", 4, 'f')       \
  X(Float64, 7, "f64", 8, 'f')       \
  X(Complex64, 9, "c64", 8, 'c')     \
  X(Complex128, 10, "c128", 16, 'c') \
  X(Bool, 11, "bool", 1, 'b')        \
  X(BFloat16, 15, "bf16", 2, 'f')

enum class DType : uint8_t {
#define FXJIT_DTYPE(name, value, text, bytes, kind) name = value,
  FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
};

inline constexpr size_t size_of(DType t) {
  switch (t) {
#define FXJIT_DTYPE(name, value, text, bytes, kind) \
  case DType::name:                                 \
    return bytes;
    FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  }
  return 0;
}

inline constexpr const char* to_text(DType t) {
  switch (t) {
#define FXJIT_DTYPE(name, value, text, bytes, kind) \
  case DType::name:                                 \
    return text;
    FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  }
  return "?";
}

// 'f', 'i', 'u', 'b' or 'c', as in the table.
inline constexpr char kind_of(DType t) {
  switch (t) {
#define FXJIT_DTYPE(name, value, text, bytes, kind) \
  case DType::name:                                 \
    return kind;
    FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  }
  return '?';
}

inline constexpr bool is_floating(DType t) { return kind_of(t) == 'f'; }
inline constexpr bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
inline constexpr bool is_integral(DType t) { return kind_of(t) == 'i' || kind_of(t) == 'u'; }

// The type in which an operator on `t` computes: half types compute in float32 and round after each operator.
inline constexpr DType compute_type(DType t) { return is_half(t) ? DType::Float32 : t; }

}  // namespace fxjit::inline v0
