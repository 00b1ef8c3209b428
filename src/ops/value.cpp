#include "ops/value.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/errors.h"

namespace fxjit::inline v0::ops {
namespace {

// cvttsd2si: the "integer indefinite" value where the truncated operand does not fit.
template <class I>
int64_t truncate(double v) {
  constexpr double limit = -static_cast<double>(std::numeric_limits<I>::min());
  if (!(std::trunc(v) >= -limit && v < limit)) return std::numeric_limits<I>::min();
  return static_cast<int64_t>(v);
}

int64_t wrap_to(DType t, int64_t v) {
  switch (t) {
    case DType::UInt8:
      return static_cast<uint8_t>(v);
    case DType::Int8:
      return static_cast<int8_t>(v);
    case DType::Int16:
      return static_cast<int16_t>(v);
    case DType::Int32:
      return static_cast<int32_t>(v);
    case DType::Int64:
      return v;
    case DType::Bool:
      return v != 0;
    case DType::Float16:
    case DType::Float32:
    case DType::Float64:
    case DType::BFloat16:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  FXJIT_UNREACHABLE("wrapping to ", to_text(t));
}

double round_double(DType t, double v) {
  const float f = static_cast<float>(v);
  switch (t) {
    case DType::Float16:
      return half_to_float(float_to_half(f));
    case DType::BFloat16:
      return bfloat_to_float(float_to_bfloat(f));
    case DType::Float32:
      return f;
    case DType::Float64:
      return v;
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Bool:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  FXJIT_UNREACHABLE("rounding to ", to_text(t));
}

template <class T>
Value load_as(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (std::is_floating_point_v<T>) return Value::of(static_cast<double>(v));
  return Value::of(static_cast<int64_t>(v));
}

template <class T>
void store_as(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace

Value Value::of(double v) { return {std::bit_cast<uint64_t>(v)}; }
Value Value::of(int64_t v) { return {static_cast<uint64_t>(v)}; }
double Value::f() const { return std::bit_cast<double>(bits); }
int64_t Value::i() const { return static_cast<int64_t>(bits); }

Value round_to(DType t, Value v) {
  return is_floating(t) ? Value::of(round_double(t, v.f())) : Value::of(wrap_to(t, v.i()));
}

Value cast(DType from, DType to, Value v) {
  if (is_floating(from)) {
    if (is_floating(to)) return round_to(to, v);
    if (to == DType::Bool) return Value::of(int64_t{v.f() != 0});
    bool wide = to == DType::Int64 || to == DType::UInt8;
    return round_to(to, Value::of(wide ? truncate<int64_t>(v.f()) : truncate<int32_t>(v.f())));
  }
  if (!is_floating(to)) return round_to(to, v);
  // One rounding from int64 to float: through double there would be two.
  if (to == DType::Float64) return Value::of(static_cast<double>(v.i()));
  return round_to(to, Value::of(static_cast<double>(static_cast<float>(v.i()))));
}

double largest(DType t) {
  FXJIT_CHECK(is_floating(t), "the largest of ", to_text(t));
  if (t == DType::Float16) return 65504;
  if (t == DType::BFloat16) return 0x1.fep127;
  return t == DType::Float32 ? double{std::numeric_limits<float>::max()} : std::numeric_limits<double>::max();
}

Value load(DType t, const void* p) {
  switch (t) {
    case DType::UInt8:
      return load_as<uint8_t>(p);
    case DType::Int8:
      return load_as<int8_t>(p);
    case DType::Int16:
      return load_as<int16_t>(p);
    case DType::Int32:
      return load_as<int32_t>(p);
    case DType::Int64:
      return load_as<int64_t>(p);
    case DType::Bool:
      return Value::of(int64_t{*static_cast<const uint8_t*>(p) != 0});
    case DType::Float32:
      return load_as<float>(p);
    case DType::Float64:
      return load_as<double>(p);
    case DType::Float16:
      return Value::of(double{half_to_float(static_cast<uint16_t>(load_as<uint16_t>(p).i()))});
    case DType::BFloat16:
      return Value::of(double{bfloat_to_float(static_cast<uint16_t>(load_as<uint16_t>(p).i()))});
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  FXJIT_UNREACHABLE("loading ", to_text(t));
}

void store(DType t, void* p, Value v) {
  switch (t) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Bool:
      return store_as(p, static_cast<uint8_t>(v.i()));
    case DType::Int16:
      return store_as(p, static_cast<int16_t>(v.i()));
    case DType::Int32:
      return store_as(p, static_cast<int32_t>(v.i()));
    case DType::Int64:
      return store_as(p, v.i());
    case DType::Float32:
      return store_as(p, static_cast<float>(v.f()));
    case DType::Float64:
      return store_as(p, v.f());
    case DType::Float16:
      return store_as(p, float_to_half(static_cast<float>(v.f())));
    case DType::BFloat16:
      return store_as(p, float_to_bfloat(static_cast<float>(v.f())));
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  FXJIT_UNREACHABLE("storing ", to_text(t));
}

uint16_t float_to_half(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | static_cast<uint16_t>((magnitude >> 13) & 0x1ff);
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and more round to infinity
  if (magnitude < 0x38800000) {                       // below 2^-14: subnormal, in units of 2^-24
    const float units = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(units));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t exponent = (h >> 10) & 0x1f, mantissa = h & 0x3ff;
  if (exponent == 0) {
    const float v = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(v) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

uint16_t float_to_bfloat(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if (v != v) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float bfloat_to_float(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

}  // namespace fxjit::inline v0::ops
