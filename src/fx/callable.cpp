#include "fxjit/fx/callable.h"

#include <functional>

#include "support/errors.h"

namespace fxjit::inline v0::fx {

std::string_view Callable::base_name() const {
  const std::string_view name = qualified_name();
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::string Callable::pretty_name() const {
  const std::string_view name = qualified_name();
  if (name.starts_with("_operator.")) return std::string(name.substr(1));
  return std::string(name);
}

void Callable::print(std::string& out) const { out += "<function " + std::string(qualified_name()) + ">"; }

Value Callable::call(std::span<const Value>, const Value&) const {
  throw NotImplementedError(pretty_name() + " cannot be called on values here");
}

bool Callable::is_impure(const Argument&, const Argument&, bool) const { return false; }

Argument Callable::trace_body(TracerBase&, std::span<const Argument>, const Argument&) const {
  throw TypeError(pretty_name() + " is no composite: it has no body to trace");
}

namespace {

class HostFunction final : public Callable {
 public:
  using Body = std::function<Value(std::span<const Value>, const Value&)>;
  HostFunction(std::string name, Body body, bool impure)
      : name_(std::move(name)), body_(std::move(body)), impure_(impure) {}

  std::string_view qualified_name() const override { return name_; }
  Value call(std::span<const Value> args, const Value& kwargs) const override { return body_(args, kwargs); }
  bool is_impure(const Argument&, const Argument&, bool) const override { return impure_; }

 private:
  std::string name_;
  Body body_;
  bool impure_;
};

}  // namespace

CallableRef make_function(std::string qualified_name, std::function<Value(std::span<const Value>, const Value&)> body,
                          bool impure) {
  return make_ref<HostFunction>(std::move(qualified_name), std::move(body), impure);
}

}  // namespace fxjit::inline v0::fx
