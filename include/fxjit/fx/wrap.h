// Composites: functions that stay one call_function node in a traced graph and keep their body, so that they can be
// inlined later.
//
//   auto sigmoid_lowp = fx::wrap("sigmoid_lowp", [](auto x) { return x.to(kFloat).sigmoid().to(kHalf); });
//
// Called with a Proxy anywhere in its arguments it records (or, where the tracer's is_leaf_function says false, traces
// through); called with anything else it runs the body.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/fx/convert.h"

namespace fxjit::inline v0::fx {

struct WrapOptions {
  bool leaf = false;    // never inlined, not even by compile()
  bool impure = false;  // stays though its result is unused
};

// The call target of a composite written in C++.
class FXJIT_API Composite final : public Callable {
 public:
  // Records the body for these arguments; empty if they do not fit its parameters.
  using Body = std::function<std::optional<Argument>(TracerBase& tracer, std::span<const Argument> args)>;

  Composite(std::string qualified_name, WrapOptions options);
  ~Composite() override;

  std::string_view qualified_name() const override { return name_; }
  bool is_composite() const override { return true; }
  bool always_leaf() const override { return options_.leaf; }
  bool is_impure(const Argument&, const Argument&, bool) const override { return options_.impure; }
  Argument trace_body(TracerBase& tracer, std::span<const Argument> args, const Argument& kwargs) const override;
  // Traces the body and interprets it.
  Value call(std::span<const Value> args, const Value& kwargs) const override;

  // One body for each list of parameter types that it was called with; `key` identifies the list.
  void add_body(const void* key, size_t arity, const std::function<Body()>& make);

 private:
  struct Entry {
    const void* key;
    size_t arity;
    Body body;
  };
  std::string name_;
  WrapOptions options_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Entry>> bodies_;
};

namespace detail {

template <class... Ts>
inline constexpr char type_list_key = 0;

// What a body takes for an argument of this type: Proxies and structures of them as they are, text as std::string.
template <class T>
using BodyParameter =
    std::conditional_t<std::is_convertible_v<T, std::string_view>, std::string, std::remove_cvref_t<T>>;

template <class F, class... Params>
Composite::Body make_body(std::shared_ptr<const F> fn) {
  return [fn](TracerBase& tracer, std::span<const Argument> args) -> std::optional<Argument> {
    return [&]<size_t... I>(std::index_sequence<I...>) -> std::optional<Argument> {
      std::tuple<std::optional<Params>...> params;
      if (!(from_argument(args[I], tracer, std::get<I>(params)) && ...)) return std::nullopt;
      return to_argument((*fn)(std::move(*std::get<I>(params))...));
    }(std::index_sequence_for<Params...>());
  };
}

}  // namespace detail

template <class F>
class Wrapped {
 public:
  Wrapped(std::string qualified_name, F body, WrapOptions options)
      : body_(std::make_shared<const F>(std::move(body))),
        target_(make_ref<Composite>(std::move(qualified_name), options)) {
    // Bodies that take Proxies alone are known before the first call: a parsed graph may call them.
    if constexpr (constexpr size_t n = detail::proxy_arity<F>(); n > 0) {
      [this]<size_t... I>(std::index_sequence<I...>) {
        this->template add_body<decltype((void)I, Proxy(nullptr))...>();
      }(std::make_index_sequence<n>());
    }
  }

  // The call target of the recorded nodes: compare with `node->target()`.
  const Ref<Composite>& target() const { return target_; }

  template <class... Args>
  auto operator()(Args&&... args) const {
    if constexpr ((detail::holds_proxy<Args>() || ...)) {
      using Result = std::remove_cvref_t<decltype((*body_)(std::declval<detail::BodyParameter<Args>>()...))>;
      add_body<detail::BodyParameter<Args>...>();
      std::vector<TracerBase*> tracers;
      auto collect = [&](const Proxy& p) { tracers.push_back(&p.tracer()); };
      (detail::for_each_proxy<std::remove_cvref_t<Args>>(args, collect), ...);
      TracerBase& tracer = detail::common_tracer(tracers, target_->qualified_name());
      const Argument lowered[] = {detail::to_argument(args)...};
      std::optional<Result> result;
      const Argument recorded = tracer.call_wrapped(target_, lowered);
      if (!detail::from_argument(recorded, tracer, result)) {
        throw TraceError("the call of " + std::string(target_->qualified_name()) + " yields " + recorded.to_string() +
                         ", which is not what its body returns");
      }
      return std::move(*result);
    } else {
      return (*body_)(std::forward<Args>(args)...);
    }
  }

 private:
  template <class... Params>
  void add_body() const {
    target_->add_body(&detail::type_list_key<Params...>, sizeof...(Params),
                      [this] { return detail::make_body<F, Params...>(body_); });
  }

  std::shared_ptr<const F> body_;
  Ref<Composite> target_;
};

template <class F>
Wrapped<F> wrap(std::string qualified_name, F body, WrapOptions options = {}) {
  return Wrapped<F>(std::move(qualified_name), std::move(body), options);
}

// Replaces the call of a composite by its body, recorded in front of it, and erases the call; returns what stands for
// its result. With `recursive` composites called by the body are inlined too. TypeError if it is no such call.
FXJIT_API Argument inline_call(Node* call, bool recursive = false);
// Inlines the calls of composites for which `filter` holds (all, but for always_leaf ones); returns their number.
FXJIT_API size_t inline_composites(Graph& graph, FunctionRef<bool(const Node&)> filter = {}, bool recursive = false);

}  // namespace fxjit::inline v0::fx
