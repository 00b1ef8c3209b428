#include <ATen/core/enum_tag.h>
#include <ATen/core/jit_type.h>

#include "torch/aten_call.h"
#include "torch/convert.h"

namespace fxjit::inline v0::torch_ {
namespace {

[[noreturn]] void bad_argument(const c10::OperatorHandle& op, const c10::Argument& a, const fx::Value& v) {
  throw TypeError(c10::toString(op.operator_name()) + "(): argument '" + a.name() + "' must be " +
                  a.type()->repr_str() + ", not " + v.type_name());
}

}  // namespace

AtenCallable::AtenCallable(c10::OperatorHandle op) : op_(std::move(op)), name_(c10::toString(op_.operator_name())) {}

std::string_view AtenCallable::base_name() const {
  std::string_view name = name_;
  name.remove_prefix(name.find("::") + 2);
  return name.substr(0, name.find('.'));
}

std::string AtenCallable::pretty_name() const {
  std::string out = "torch.ops." + name_;
  out.replace(out.find("::"), 2, ".");
  return out;
}

std::optional<fx::Signature> AtenCallable::signature() const {
  fx::Signature out;
  for (const c10::Argument& a : op_.schema().arguments()) {
    fx::Parameter p{a.name(), a.kwarg_only() ? fx::ParameterKind::KeywordOnly : fx::ParameterKind::Positional};
    if (a.default_value()) p.default_value = to_value(*a.default_value(), *a.real_type());
    out.push_back(std::move(p));
  }
  return out;
}

bool AtenCallable::is_impure(const fx::Argument&, const fx::Argument&, bool impure_random) const {
  const c10::FunctionSchema& schema = op_.schema();
  if (schema.is_mutable() || schema.returns().empty()) return true;
  return impure_random && op_.hasTag(at::Tag::nondeterministic_seeded);
}

fx::Value AtenCallable::call(std::span<const fx::Value> args, const fx::Value& kwargs) const {
  std::vector<c10::IValue> stack = make_stack(op_, args, kwargs);
  op_.callBoxed(stack);
  if (stack.empty()) return {};
  if (stack.size() == 1) return to_value(stack[0]);
  std::vector<fx::Value> results;
  for (const c10::IValue& v : stack) results.push_back(to_value(v));
  return fx::Value::tuple(results);
}

std::optional<c10::OperatorHandle> find_operator(std::string_view schema) {
  size_t colons = schema.find("::");
  if (colons == std::string_view::npos) return std::nullopt;
  size_t dot = schema.find('.', colons);
  std::string name(schema.substr(0, dot));
  std::string overload(dot == std::string_view::npos ? std::string_view() : schema.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchema({std::move(name), std::move(overload)});
}

std::vector<c10::IValue> make_stack(const c10::OperatorHandle& op, std::span<const fx::Value> args,
                                    const fx::Value& kwargs) {
  const auto& arguments = op.schema().arguments();
  const std::string name = c10::toString(op.operator_name());
  if (args.size() > arguments.size())
    throw TypeError(name + "() takes " + std::to_string(arguments.size()) + " arguments but " +
                    std::to_string(args.size()) + " were given");
  std::vector<c10::IValue> stack;
  stack.reserve(arguments.size());
  size_t used = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& a = arguments[i];
    const fx::Value* v = i < args.size() ? &args[i] : nullptr;
    if (!v && !kwargs.is_none()) {
      v = kwargs.find(fx::Value(a.name()));
      used += v != nullptr;
    }
    if (v) {
      auto converted = to_ivalue(*v, a);
      if (!converted) bad_argument(op, a, *v);
      stack.push_back(*std::move(converted));
    } else if (a.default_value()) {
      stack.push_back(*a.default_value());
    } else {
      throw TypeError(name + "() missing argument '" + a.name() + "'");
    }
  }
  if (!kwargs.is_none() && used != kwargs.size()) throw TypeError(name + "() got an unexpected keyword argument");
  return stack;
}

}  // namespace fxjit::inline v0::torch_
