#include "fxjit/fx/proxy.h"

#include "fxjit/fx/tracer.h"

namespace fxjit::inline v0::fx {

Proxy::Proxy(Node* node) : node_(node), tracer_(&node->graph().appending_tracer()) {}

Proxy::operator bool() const { return tracer_->to_bool(*this); }

ProxyIterator Proxy::begin() const { return ProxyIterator(tracer_->iter(*this)); }

std::vector<Proxy> Proxy::unpack(size_t n) const {
  std::vector<Proxy> items;
  items.reserve(n);
  for (size_t i = 0; i < n; ++i) items.push_back(index(static_cast<int64_t>(i)));
  return items;
}

Proxy Proxy::attr(std::string_view name) const {
  return tracer_->create_proxy(Opcode::CallFunction, builtin_function("builtins.getattr"),
                               Argument::tuple({*this, name}));
}

Proxy Proxy::call_method(std::string_view name, std::initializer_list<Argument> args, Argument kwargs) const {
  return tracer_->create_proxy(Opcode::CallMethod, name, Argument::tuple(args), std::move(kwargs));
}

Proxy Proxy::method_kw(std::string_view name, std::initializer_list<Argument> args, Argument kwargs) const {
  std::vector<Argument> all{*this};
  all.insert(all.end(), args.begin(), args.end());
  return tracer_->create_proxy(Opcode::CallMethod, name, Argument::tuple(all), std::move(kwargs));
}

namespace {

Proxy record(TracerBase& tracer, std::string_view function, std::initializer_list<Argument> args) {
  return tracer.create_proxy(Opcode::CallFunction, builtin_function(function), Argument::tuple(args));
}

}  // namespace

Proxy Proxy::index(Argument i) const { return record(*tracer_, "_operator.getitem", {*this, std::move(i)}); }
Proxy Proxy::operator-() const { return record(*tracer_, "_operator.neg", {*this}); }
Proxy Proxy::operator+() const { return record(*tracer_, "_operator.pos", {*this}); }
Proxy Proxy::operator~() const { return record(*tracer_, "_operator.invert", {*this}); }
Proxy Proxy::floordiv(const Argument& o) const { return record(*tracer_, "_operator.floordiv", {*this, o}); }
Proxy Proxy::power(const Argument& o) const { return record(*tracer_, "_operator.pow", {*this, o}); }
Proxy Proxy::at(const Argument& o) const { return record(*tracer_, "_operator.matmul", {*this, o}); }

Proxy Proxy::binary(std::string_view function, const Proxy& a, const Argument& b) {
  return record(*a.tracer_, function, {a, b});
}

Proxy Proxy::binary(std::string_view function, const Argument& a, const Proxy& b) {
  return record(*b.tracer_, function, {a, b});
}

}  // namespace fxjit::inline v0::fx
