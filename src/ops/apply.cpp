// The REF column expanded: one function per row and type.
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/ref.h"
#include "ops/value.h"
#include "support/errors.h"

namespace fxjit::inline v0::ops {
namespace {

namespace R = reference;

template <class T>
constexpr DType type_of() {
  if constexpr (std::is_same_v<T, float>) return DType::Float32;
  if constexpr (std::is_same_v<T, double>) return DType::Float64;
  if constexpr (std::is_same_v<T, bool>) return DType::Bool;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::UInt8;
  if constexpr (std::is_same_v<T, int8_t>) return DType::Int8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::Int16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::Int32;
  return DType::Int64;
}

constexpr TypeSet reference_domain(TypeSet compiled) {
  return compiled & bit(DType::Float32) ? compiled | bit(DType::Float64) : compiled;
}

template <class T>
Value wrap_result(T v) {
  if constexpr (std::is_floating_point_v<T>) return Value::of(static_cast<double>(v));
  return Value::of(static_cast<int64_t>(v));
}

template <class T>
T unwrap(Value v) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(v.f());
  return static_cast<T>(v.i());
}

// One instance per row and type; only those within the domain are compiled.
#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten)     \
  template <class T, class X>                                                         \
  auto ref_##name([[maybe_unused]] X x, [[maybe_unused]] T y, [[maybe_unused]] T z) { \
    ref                                                                               \
  }
#include "fxjit/ops/elementwise.def"

template <class T>
Value apply_as(OpId id, Value x, Value y, Value z) {
  switch (id) {
#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten)     \
  case OpId::name:                                                                    \
    if constexpr ((reference_domain(domain) & bit(type_of<T>())) != 0) {              \
      using X = std::conditional_t<Promote::promote == Promote::Where, bool, T>;      \
      return wrap_result(ref_##name<T, X>(unwrap<X>(x), unwrap<T>(y), unwrap<T>(z))); \
    }                                                                                 \
    break;
#include "fxjit/ops/elementwise.def"
  }
  FXJIT_UNREACHABLE(row(id).name, " has no meaning on ", to_text(type_of<T>()));
}

Value apply_compute(OpId id, DType t, Value x, Value y, Value z) {
  switch (t) {
    case DType::UInt8:
      return apply_as<uint8_t>(id, x, y, z);
    case DType::Int8:
      return apply_as<int8_t>(id, x, y, z);
    case DType::Int16:
      return apply_as<int16_t>(id, x, y, z);
    case DType::Int32:
      return apply_as<int32_t>(id, x, y, z);
    case DType::Int64:
      return apply_as<int64_t>(id, x, y, z);
    case DType::Bool:
      return apply_as<bool>(id, x, y, z);
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16:
      return apply_as<float>(id, x, y, z);
    case DType::Float64:
      return apply_as<double>(id, x, y, z);
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  FXJIT_UNREACHABLE(row(id).name, " on ", to_text(t));
}

}  // namespace

bool has_reference(OpId id, DType t) { return reference_domain(row(id).domain) & bit(t); }

Value apply(OpId id, DType t, Value x, Value y, Value z) {
  FXJIT_CHECK(has_reference(id, t), row(id).name, " has no meaning on ", to_text(t));
  Value r = apply_compute(id, t, x, y, z);
  return returns_bool(row(id).promote) ? r : round_to(t, r);
}

}  // namespace fxjit::inline v0::ops
