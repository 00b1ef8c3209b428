// What REF texts call: the plain C++ meaning of the operators whose C++ operator would promote, overflow or round
// otherwise. Functions of math.def are computed in double and rounded, which is good to far below their budgets.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace fxjit::inline v0::ops::reference {

// Integers wrap: computed modulo 2^64, of which the low bits are those of the narrow result.
template <class T>
T wrap(uint64_t v) {
  return static_cast<T>(v);
}
template <class T>
T add(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return x + y;
  return wrap<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
template <class T>
T sub(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return x - y;
  return wrap<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
template <class T>
T mul(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return x * y;
  return wrap<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}
template <class T>
T neg(T x) {
  if constexpr (std::is_floating_point_v<T>) return -x;
  return wrap<T>(uint64_t{0} - static_cast<uint64_t>(x));
}
template <class T>
T abs(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
  return x < T(0) ? neg(x) : x;
}
template <class T>
T fma(T x, T y, T z) {
  if constexpr (std::is_floating_point_v<T>) return std::fma(x, y, z);
  return add(mul(x, y), z);
}
template <class T>
T bit_not(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return !x;
  } else {
    return static_cast<T>(~x);
  }
}

// NaN where either is; of two equal values the second.
template <class T>
T min(T x, T y) {
  if (x != x) return x;
  if (y != y) return y;
  return x < y ? x : y;
}
template <class T>
T max(T x, T y) {
  if (x != x) return x;
  if (y != y) return y;
  return x > y ? x : y;
}

template <class T>
T shl(T x, T y) {
  constexpr int bits = 8 * sizeof(T);
  if (y < T(0) || y >= T(bits)) return T(0);
  return wrap<T>(static_cast<uint64_t>(x) << y);
}
template <class T>
T shr(T x, T y) {
  constexpr int most = 8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0);
  if (y < T(0) || y >= T(most)) return most < int{8 * sizeof(T)} ? static_cast<T>(x >> most) : T(0);
  return static_cast<T>(x >> y);
}

#define FXJIT_REFERENCE_1(name, ...)         \
  template <class T>                         \
  T name(T value) {                          \
    [[maybe_unused]] const double x = value; \
    return static_cast<T>(__VA_ARGS__);      \
  }
#define FXJIT_REFERENCE_2(name, ...)    \
  template <class T>                    \
  T name(T first, T second) {           \
    const double x = first, y = second; \
    return static_cast<T>(__VA_ARGS__); \
  }
#define FXJIT_MATH(name, arity, ulp, low, high, exact) FXJIT_REFERENCE_##arity(name, exact)
#include "fxjit/ops/math.def"
#undef FXJIT_REFERENCE_1
#undef FXJIT_REFERENCE_2

}  // namespace fxjit::inline v0::ops::reference
