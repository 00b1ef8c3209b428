// A stand-in for a value while tracing: operations on it record nodes. Two pointers; it must not outlive its tracer.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::fx {

class TracerBase;
class ProxyIterator;

class FXJIT_API Proxy {
 public:
  // Appends to the node's graph at its insert point.
  explicit Proxy(Node* node);
  Proxy(Node* node, TracerBase& tracer) : node_(node), tracer_(&tracer) {}

  Node* node() const { return node_; }
  TracerBase& tracer() const { return *tracer_; }
  operator Argument() const { return Argument(node_); }  // NOLINT: a Proxy is an argument wherever one is taken

  // `if (x)`, `x && y`, `!x`: the tracer's to_bool, by default a TraceError.
  explicit operator bool() const;
  // `for (auto v : x)`: the tracer's iter, by default a TraceError.
  ProxyIterator begin() const;
  std::nullptr_t end() const { return nullptr; }
  // Unpacking needs a count: n getitem nodes.
  std::vector<Proxy> unpack(size_t n) const;
  template <size_t N>
  auto unpack() const {
    return [this]<size_t... I>(std::index_sequence<I...>) {
      return std::array<Proxy, N>{index(static_cast<int64_t>(I))...};
    }(std::make_index_sequence<N>());
  }

  // call_function getattr: x.attr("shape"), x.attr("T").
  Proxy attr(std::string_view name) const;
  // call_method with this value first.
  template <class... Args>
  Proxy method(std::string_view name, Args&&... args) const {
    return call_method(name, {Argument(*this), Argument(std::forward<Args>(args))...}, {});
  }
  Proxy method_kw(std::string_view name, std::initializer_list<Argument> args, Argument kwargs) const;
  // call_function getitem; several indices are a tuple.
  Proxy index(Argument i) const;
  Proxy index(std::initializer_list<Argument> indices) const { return index(Argument::tuple(indices)); }
  Proxy operator[](const Argument& i) const { return index(i); }
  // call_method `__call__`.
  template <class... Args>
  Proxy operator()(Args&&... args) const {
    return method("__call__", std::forward<Args>(args)...);
  }

#define FXJIT_PROXY_METHOD(name)                       \
  template <class... Args>                             \
  Proxy name(Args&&... args) const {                   \
    return method(#name, std::forward<Args>(args)...); \
  }
#include "fxjit/fx/proxy_methods.def"
#undef FXJIT_PROXY_METHOD

  Proxy operator-() const;
  Proxy operator+() const;
  Proxy operator~() const;
  Proxy floordiv(const Argument& o) const;  // operator.floordiv, Python's //
  Proxy power(const Argument& o) const;     // operator.pow, Python's **
  Proxy at(const Argument& o) const;        // operator.matmul, Python's @

#define FXJIT_PROXY_OPERATOR(op, function)                                                                    \
  friend Proxy operator op(const Proxy& a, const Proxy& b) { return binary("_operator." function, a, b); }    \
  friend Proxy operator op(const Proxy& a, const Argument& b) { return binary("_operator." function, a, b); } \
  friend Proxy operator op(const Argument& a, const Proxy& b) { return binary("_operator." function, a, b); }
  FXJIT_PROXY_OPERATOR(+, "add")
  FXJIT_PROXY_OPERATOR(-, "sub")
  FXJIT_PROXY_OPERATOR(*, "mul")
  FXJIT_PROXY_OPERATOR(/, "truediv")
  FXJIT_PROXY_OPERATOR(%, "mod")
  FXJIT_PROXY_OPERATOR(<<, "lshift")
  FXJIT_PROXY_OPERATOR(>>, "rshift")
  FXJIT_PROXY_OPERATOR(&, "and_")
  FXJIT_PROXY_OPERATOR(|, "or_")
  FXJIT_PROXY_OPERATOR(^, "xor")
  FXJIT_PROXY_OPERATOR(==, "eq")
  FXJIT_PROXY_OPERATOR(!=, "ne")
  FXJIT_PROXY_OPERATOR(<, "lt")
  FXJIT_PROXY_OPERATOR(>, "gt")
  FXJIT_PROXY_OPERATOR(<=, "le")
  FXJIT_PROXY_OPERATOR(>=, "ge")
#undef FXJIT_PROXY_OPERATOR

// As in Python without in-place hooks: records the pure operation and rebinds.
#define FXJIT_PROXY_ASSIGN(op) \
  Proxy& operator op##=(const Argument & o) { return *this = *this op o; }
  FXJIT_PROXY_ASSIGN(+)
  FXJIT_PROXY_ASSIGN(-)
  FXJIT_PROXY_ASSIGN(*)
  FXJIT_PROXY_ASSIGN(/)
#undef FXJIT_PROXY_ASSIGN

 private:
  Proxy call_method(std::string_view name, std::initializer_list<Argument> args, Argument kwargs) const;
  static Proxy binary(std::string_view function, const Proxy& a, const Argument& b);
  static Proxy binary(std::string_view function, const Argument& a, const Proxy& b);
  static Proxy binary(std::string_view function, const Proxy& a, const Proxy& b) {
    return binary(function, a, Argument(b.node_));
  }

  Node* node_;
  TracerBase* tracer_;
};

class ProxyIterator {
 public:
  explicit ProxyIterator(std::vector<Proxy> values)
      : values_(std::make_shared<std::vector<Proxy>>(std::move(values))) {}
  const Proxy& operator*() const { return (*values_)[i_]; }
  ProxyIterator& operator++() {
    ++i_;
    return *this;
  }
  friend bool operator==(const ProxyIterator& a, std::nullptr_t) { return a.i_ == a.values_->size(); }

 private:
  std::shared_ptr<std::vector<Proxy>> values_;
  size_t i_ = 0;
};

}  // namespace fxjit::inline v0::fx
