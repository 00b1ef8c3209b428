// The choice of an overload by the arguments, as torch's Python argument parser makes it.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "fxjit/errors.h"
#include "torch/convert.h"
#include "torch/method_resolver.h"

namespace fxjit::inline v0::torch_ {
namespace {

using Overloads = std::vector<c10::OperatorHandle>;
using Table = std::unordered_map<std::string, Overloads>;

size_t tensor_parameters(const c10::FunctionSchema& schema) {
  size_t n = 0;
  for (const c10::Argument& a : schema.arguments()) {
    const c10::Type* type = a.type().get();
    if (type->kind() == c10::TypeKind::OptionalType) type = type->containedTypes().at(0).get();
    n += type->kind() == c10::TypeKind::TensorType;
  }
  return n;
}

bool is_output_form(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& a) {
    return a.kwarg_only() && a.alias_info() && a.alias_info()->isWrite();
  });
}

Table make_table() {
  Table table;
  constexpr std::string_view prefix = "aten::";
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with(prefix)) continue;
    auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && !is_output_form(op->schema())) table[name.name.substr(prefix.size())].push_back(*op);
  }
  for (auto& [name, overloads] : table) {
    std::sort(overloads.begin(), overloads.end(), [](const c10::OperatorHandle& a, const c10::OperatorHandle& b) {
      auto key = [](const c10::OperatorHandle& op) {
        const c10::FunctionSchema& s = op.schema();
        return std::tuple(-static_cast<int64_t>(tensor_parameters(s)), s.arguments().size(), s.overload_name());
      };
      return key(a) < key(b);
    });
  }
  return table;
}

const Overloads* find_overloads(std::string_view name) {
  // Leaked: graphs may run while the process ends. Operators that are registered later are no methods of tensors.
  static const Table& table = *new Table(make_table());
  auto it = table.find(std::string(name));
  return it == table.end() ? nullptr : &it->second;
}

// As in torch's parser: these take a number wherever they take a tensor.
bool numbers_as_tensors(std::string_view name) {
  if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  static constexpr std::array<std::string_view, 9> names = {
      "add", "sub", "mul", "div", "divide", "multiply", "subtract", "true_divide", "floor_divide"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_int_list(const c10::Type& type) {
  if (type.kind() != c10::TypeKind::ListType) return false;
  auto element = type.containedTypes().at(0)->kind();
  return element == c10::TypeKind::IntType || element == c10::TypeKind::SymIntType;
}

// x.view(2, 3) for x.view([2, 3]): where the first parameter behind self is a list of ints of any length.
std::optional<std::vector<fx::Value>> pack_ints(const c10::FunctionSchema& schema, std::span<const fx::Value> args) {
  const auto& parameters = schema.arguments();
  if (parameters.size() < 2 || args.size() < 2 || parameters[1].N() || !is_int_list(*parameters[1].real_type()))
    return std::nullopt;
  if (!std::all_of(args.begin() + 1, args.end(), [](const fx::Value& v) { return v.is_int(); })) return std::nullopt;
  return std::vector<fx::Value>{args[0], fx::Value::list(args.subspan(1))};
}

std::optional<std::vector<c10::IValue>> fit(const c10::FunctionSchema& schema, std::span<const fx::Value> args,
                                            const fx::Value& kwargs, bool numbers) {
  const auto& parameters = schema.arguments();
  size_t used = 0;
  std::vector<c10::IValue> stack;
  stack.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const c10::Argument& p = parameters[i];
    const fx::Value* v = nullptr;
    if (i < args.size()) {
      if (p.kwarg_only()) return std::nullopt;
      v = &args[i];
    } else if (!kwargs.is_none()) {
      v = kwargs.find(fx::Value(p.name()));
      used += v != nullptr;
    }
    if (!v) {
      if (!p.default_value()) return std::nullopt;
      stack.push_back(*p.default_value());
      continue;
    }
    auto converted = to_ivalue(*v, p, numbers);
    if (!converted) return std::nullopt;
    stack.push_back(*std::move(converted));
  }
  if (args.size() > parameters.size() || (!kwargs.is_none() && used != kwargs.size())) return std::nullopt;
  return stack;
}

fx::Value call(const c10::OperatorHandle& op, std::vector<c10::IValue> stack) {
  op.callBoxed(stack);
  if (stack.empty()) return {};
  if (stack.size() == 1) return to_value(stack[0], *op.schema().returns()[0].real_type());
  std::vector<fx::Value> results;
  for (const c10::IValue& v : stack) results.push_back(to_value(v));
  return fx::Value::tuple(results);
}

[[noreturn]] void no_overload(std::string_view name, const Overloads& overloads, std::span<const fx::Value> args) {
  std::string types;
  for (const fx::Value& v : args) types += (types.empty() ? "" : ", ") + v.type_name();
  std::string text =
      std::string(name) + "() received an invalid combination of arguments - got (" + types + "), but expected one of:";
  for (const c10::OperatorHandle& op : overloads) text += "\n * " + c10::toString(op.schema());
  throw TypeError(text);
}

}  // namespace

bool has_operator(std::string_view name) { return find_overloads(name) != nullptr; }

std::optional<fx::Value> call_overloaded(std::string_view name, std::span<const fx::Value> args,
                                         const fx::Value& kwargs) {
  const Overloads* overloads = find_overloads(name);
  if (!overloads) return std::nullopt;
  const bool numbers = numbers_as_tensors(name);
  for (const c10::OperatorHandle& op : *overloads)
    if (auto stack = fit(op.schema(), args, kwargs, numbers)) return call(op, *std::move(stack));
  for (const c10::OperatorHandle& op : *overloads)
    if (auto packed = pack_ints(op.schema(), args))
      if (auto stack = fit(op.schema(), *packed, kwargs, numbers)) return call(op, *std::move(stack));
  no_overload(name, *overloads, args);
}

}  // namespace fxjit::inline v0::torch_
