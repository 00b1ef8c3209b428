// Between C++ values that hold Proxies and Arguments, for the templates of wrap.h and symbolic_trace.h.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fxjit/errors.h"
#include "fxjit/fx/tracer.h"

namespace fxjit::inline v0::fx::detail {

template <class T>
struct IsVector : std::false_type {};
template <class T, class A>
struct IsVector<std::vector<T, A>> : std::true_type {};

template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };

// Whether a Proxy is in a value of this type, by its type.
template <class T>
constexpr bool holds_proxy() {
  using U = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<U, Proxy>) {
    return true;
  } else if constexpr (IsVector<U>::value) {
    return holds_proxy<typename U::value_type>();
  } else if constexpr (TupleLike<U>) {
    return []<size_t... I>(std::index_sequence<I...>) {
      return (holds_proxy<std::tuple_element_t<I, U>>() || ...);
    }(std::make_index_sequence<std::tuple_size_v<U>>());
  } else {
    return false;
  }
}

// Scalars, Proxies and objects as they are; vectors as lists, tuples, pairs and arrays as tuples.
template <class T>
Argument to_argument(const T& v) {
  if constexpr (std::is_convertible_v<const T&, Argument>) {
    return v;
  } else if constexpr (IsVector<T>::value) {
    std::vector<Argument> items;
    for (const auto& item : v) items.push_back(to_argument(item));
    return Argument::list(items);
  } else {
    static_assert(TupleLike<T>, "not a value that a graph can hold; specialise fxjit::fx::ArgumentTraits");
    return std::apply([](const auto&... item) { return Argument::tuple({to_argument(item)...}); }, v);
  }
}

// Calls `fn` for each Proxy in `v`.
template <class T, class F>
void for_each_proxy(const T& v, F& fn) {
  if constexpr (std::is_same_v<T, Proxy>) {
    fn(v);
  } else if constexpr (!holds_proxy<T>()) {
    return;
  } else if constexpr (IsVector<T>::value) {
    for (const auto& item : v) for_each_proxy(item, fn);
  } else {
    std::apply([&](const auto&... item) { (for_each_proxy(item, fn), ...); }, v);
  }
}

// The reverse: false if `a` is no T. A structure may also be one node that stands for all of it: it is unpacked.
template <class T>
bool from_argument(const Argument& a, TracerBase& tracer, std::optional<T>& out) {
  if constexpr (std::is_same_v<T, Argument>) {
    out = a;
  } else if constexpr (std::is_same_v<T, Proxy>) {
    if (Node* n = a.node_or_null()) out = tracer.proxy(n);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (a.is_bool()) out = a.as_bool();
  } else if constexpr (std::is_integral_v<T>) {
    if (a.is_int()) out = static_cast<T>(a.as_int());
  } else if constexpr (std::is_floating_point_v<T>) {
    if (a.is_float() || a.is_int()) out = static_cast<T>(a.to_double());
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (a.is_str()) out = std::string(a.as_str());
  } else if constexpr (std::is_same_v<T, fxjit::DType>) {
    if (a.is(Argument::Kind::DType)) out = a.as_dtype();
  } else if constexpr (IsVector<T>::value) {
    T items;
    if (a.is_node()) {
      if constexpr (std::is_same_v<typename T::value_type, Proxy>) items = tracer.iter(tracer.proxy(a.as_node()));
    } else if (a.is(Argument::Kind::List) || a.is(Argument::Kind::Tuple)) {
      for (const Argument& item : a.items()) {
        std::optional<typename T::value_type> v;
        if (!from_argument(item, tracer, v)) return false;
        items.push_back(std::move(*v));
      }
    } else {
      return false;
    }
    out = std::move(items);
  } else if constexpr (TupleLike<T>) {
    constexpr size_t n = std::tuple_size_v<T>;
    std::vector<Argument> items;
    if (Node* node = a.node_or_null()) {
      for (const Proxy& p : tracer.proxy(node).unpack(n)) items.push_back(p);
    } else if (a.is(Argument::Kind::List) || a.is(Argument::Kind::Tuple)) {
      items.assign(a.items().begin(), a.items().end());
    }
    if (items.size() != n) return false;
    return [&]<size_t... I>(std::index_sequence<I...>) {
      std::tuple<std::optional<std::tuple_element_t<I, T>>...> parts;
      if (!(from_argument(items[I], tracer, std::get<I>(parts)) && ...)) return false;
      out = T{std::move(*std::get<I>(parts))...};
      return true;
    }(std::make_index_sequence<n>());
  } else if constexpr (requires { ArgumentTraits<T>::extract(a); }) {
    out = ArgumentTraits<T>::extract(a);
  } else {
    static_assert(std::is_convertible_v<T, Argument>, "no conversion from a graph's value to this parameter type");
  }
  return out.has_value();
}

// The common tracer of the Proxies in `args`; RuntimeError "Found multiple different tracers …" if they disagree.
FXJIT_API TracerBase& common_tracer(std::span<TracerBase* const> tracers, std::string_view function);

template <class F, size_t... I>
constexpr bool takes_proxies(std::index_sequence<I...>) {
  return std::is_invocable_v<const F&, decltype((void)I, std::declval<Proxy>())...>;
}

// The number of Proxies that F takes: the smallest from 1 to 8, or 0.
template <class F, size_t N = 1>
constexpr size_t proxy_arity() {
  if constexpr (N > 8) {
    return 0;
  } else if constexpr (takes_proxies<F>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return proxy_arity<F, N + 1>();
  }
}

}  // namespace fxjit::inline v0::fx::detail
