// What methods, operators and attributes mean for tensors: `x.float()`, `x + 1`, `x[:, 0]`, `x.shape`. The resolver of
// every Interpreter and generic form that runs in C++.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "fxjit/fx/interpreter.h"

namespace fxjit::inline v0::torch_ {

class MethodResolver final : public fx::OperatorResolver {
 public:
  // Methods of tensors, by torch's Python names; anything else is left to the caller.
  std::optional<fx::Value> call_method(std::string_view name, std::span<const fx::Value> args,
                                       const fx::Value& kwargs) override;
  // The built-in operators (_operator.add …, getattr, len) where a tensor is involved.
  std::optional<fx::Value> call_function(const fx::Callable& f, std::span<const fx::Value> args,
                                         const fx::Value& kwargs) override;
};

// One for the process: it has no state.
MethodResolver& method_resolver();

// Calls the overload of aten::`name` that takes these arguments, by the rules of torch's Python functions: overloads
// that take more tensors come first, ints in a row serve as a list of sizes, numbers as tensors only where torch
// allows it. Empty if there is no operator of this name; TypeError if no overload fits.
std::optional<fx::Value> call_overloaded(std::string_view name, std::span<const fx::Value> args,
                                         const fx::Value& kwargs);
bool has_operator(std::string_view name);
// Whether `f` is an operator of ATen, by schema or by name: its calls go to the dispatcher and nowhere else.
bool is_operator(const fx::Callable& f);

// x[index], as torch's Python indexing: ints, slices, None, ..., bools, tensors, and tuples of these.
fx::Value get_item(const fx::Value& tensor, const fx::Value& index);

}  // namespace fxjit::inline v0::torch_
