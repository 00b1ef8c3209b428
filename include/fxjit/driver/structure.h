// The results of programs: tensors in a structure of vectors, tuples, optionals and scalars, taken apart and put
// together again.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fxjit/fx/convert.h"

namespace fxjit::inline v0::detail {

// A leaf of a result's structure that is no tensor. Int leaves are indices of tensors, None is an undefined tensor.
FXJIT_API fx::Value constant_leaf(fx::Value v);
// The value in such a leaf; TypeError for another value.
FXJIT_API fx::Value constant_of(const fx::Value& leaf);

// What a call yields, however it was run.
struct CallResult {
  std::vector<at::Tensor> tensors;
  fx::Value structure;
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// The result of a program in C++: tensors, scalars, text, and vectors, optionals, tuples, pairs and arrays of these.
template <class T>
fx::Value flatten(const T& v, std::vector<at::Tensor>& tensors) {
  if constexpr (std::is_convertible_v<const T&, const at::Tensor&>) {
    const at::Tensor& t = v;
    if (!t.defined()) return {};
    tensors.push_back(t);
    return static_cast<int64_t>(tensors.size() - 1);
  } else if constexpr (kIsOptional<T>) {
    return v ? flatten(*v, tensors) : fx::Value();
  } else if constexpr (fx::detail::IsVector<T>::value) {
    std::vector<fx::Value> items;
    for (const auto& item : v) items.push_back(flatten(item, tensors));
    return fx::Value::list(items);
  } else if constexpr (std::is_convertible_v<const T&, fx::Value>) {
    return constant_leaf(v);
  } else {
    static_assert(fx::detail::TupleLike<T>, "fxjit::compile: the program returns a type that it cannot take apart");
    return std::apply(
        [&](const auto&... item) {
          std::vector<fx::Value> items;
          (items.push_back(flatten(item, tensors)), ...);  // in this order
          return fx::Value::tuple(items);
        },
        v);
  }
}

template <class T>
T unflatten(const fx::Value& s, const std::vector<at::Tensor>& tensors) {
  if constexpr (kIsOptional<T>) {
    if (s.is_none()) return std::nullopt;
    return unflatten<typename T::value_type>(s, tensors);
  } else if constexpr (std::is_convertible_v<at::Tensor, T>) {
    return s.is_none() ? at::Tensor() : tensors.at(static_cast<size_t>(s.as_int()));
  } else if constexpr (fx::detail::IsVector<T>::value) {
    T items;
    for (const fx::Value& item : s.items()) items.push_back(unflatten<typename T::value_type>(item, tensors));
    return items;
  } else if constexpr (std::is_same_v<T, bool>) {
    return constant_of(s).as_bool();
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(constant_of(s).as_int());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(constant_of(s).to_double());
  } else if constexpr (std::is_convertible_v<std::string, T>) {
    return std::string(constant_of(s).as_str());
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return T{unflatten<std::tuple_element_t<I, T>>(s[I], tensors)...};
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  }
}

}  // namespace fxjit::inline v0::detail
