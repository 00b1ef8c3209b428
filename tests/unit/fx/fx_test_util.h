// A world without torch: tensors of one number, and what methods and operators mean for them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fxjit/fx/fx.h"

namespace fxjit::fx::test {

class Tensor final : public Object {
 public:
  explicit Tensor(double v, ObjectKind kind = ObjectKind::Tensor) : value(v), kind_(kind) {}
  ObjectKind object_kind() const override { return kind_; }
  std::string type_name() const override { return "torch.Tensor"; }
  void print(std::string& out) const override { out += "tensor(" + std::to_string(value) + ")"; }
  double value;

 private:
  ObjectKind kind_;
};

// A tuple, as args are written.
inline Argument t(std::initializer_list<Argument> items) { return Argument::tuple(items); }

inline ObjectRef tensor(double v) { return make_ref<Tensor>(v); }
inline ObjectRef parameter(double v) { return make_ref<Tensor>(v, ObjectKind::Parameter); }
inline double number(const Value& v) {
  if (const auto* t = dynamic_cast<const Tensor*>(v.object_or_null())) return t->value;
  return v.to_double();
}

class Resolver final : public OperatorResolver {
 public:
  std::optional<Value> call_method(std::string_view name, std::span<const Value> args, const Value&) override {
    ++calls;
    const double x = number(args[0]);
    if (name == "float" || name == "half" || name == "to" || name == "t") return tensor(x);
    if (name == "sigmoid") return tensor(1 / (1 + std::exp(-x)));
    if (name == "relu") return tensor(std::max(x, 0.0));
    if (name == "neg") return tensor(-x);
    if (name == "add") return tensor(x + number(args[1]));
    if (name == "fail") throw ValueError("this method fails");
    return std::nullopt;
  }
  std::optional<Value> call_function(const Callable& f, std::span<const Value> args, const Value&) override {
    bool any = false;
    for (const Value& v : args) any |= v.is_object();
    const std::string_view name = f.qualified_name();
    if (!any || args.size() != 2) return std::nullopt;
    if (name == "_operator.add") return tensor(number(args[0]) + number(args[1]));
    if (name == "_operator.sub") return tensor(number(args[0]) - number(args[1]));
    if (name == "_operator.mul") return tensor(number(args[0]) * number(args[1]));
    return std::nullopt;
  }
  int calls = 0;
};

inline std::vector<std::string> names(const Graph& g) {
  std::vector<std::string> out;
  for (Node* n : g.nodes()) out.emplace_back(n->name());
  return out;
}

inline std::vector<std::string> names(const std::vector<Node*>& nodes) {
  std::vector<std::string> out;
  for (Node* n : nodes) out.emplace_back(n->name());
  return out;
}

using Names = std::vector<std::string>;

inline double run(GraphModule& m, std::vector<Value> args, const Value& kwargs = {}) {
  Resolver resolver;
  return number(Interpreter(m, &resolver).run(args, kwargs));
}

template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& e) {
    return std::string(to_string(e.kind())) + ": " + e.what();
  }
  return "no error";
}

#define EXPECT_STARTS_WITH(text, prefix) EXPECT_EQ(std::string(text).substr(0, std::string(prefix).size()), prefix)

inline CallableRef op(std::string_view name) { return builtin_function("_operator." + std::string(name)); }

// The composites of the primitive library.
inline const auto& sigmoid_lowp() {
  static const auto f = wrap("sigmoid_lowp", [](auto x) { return x.method("float").sigmoid().half(); });
  return f;
}
inline const auto& add_lowp() {
  static const auto f = wrap("add_lowp", [](auto a, auto b) {
    auto x = a.method("float"), y = b.method("float");
    return (x + y).half();
  });
  return f;
}
// Statement by statement: C++ leaves the order in which arguments are evaluated open.
inline Proxy foo(Proxy x, Proxy y) {
  x = sigmoid_lowp()(x);
  y = sigmoid_lowp()(y);
  return add_lowp()(x, y);
}

}  // namespace fxjit::fx::test
