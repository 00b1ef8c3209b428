// fx::Value to and from c10::IValue.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <optional>

#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::torch_ {

// With the argument's declared type: what the dispatcher wants of it. Follows torch's Python argument parser: ints
// serve as floats, an int as int[2], a number as a Tensor (wrapped) where `numbers_as_tensors`. Empty where it does not
// fit.
std::optional<c10::IValue> to_ivalue(const fx::Value& v, const c10::Argument& schema, bool numbers_as_tensors = true);
std::optional<c10::IValue> to_ivalue(const fx::Value& v, const c10::Type& type, bool numbers_as_tensors = true);
// Without a declared type. Empty for values that ATen does not know (slices, foreign objects).
std::optional<c10::IValue> to_ivalue(const fx::Value& v);

// A result, or an argument whose `real_type` tells ints from dtypes, layouts and memory formats.
fx::Value to_value(const c10::IValue& v);
fx::Value to_value(const c10::IValue& v, const c10::Type& real_type);

// A 0-dim tensor that promotes as the Python number that it stands for.
at::Tensor wrapped_number(const c10::Scalar& s);

// The type inside Optional.
inline const c10::Type& bare(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType ? *type.containedTypes().at(0) : type;
}

}  // namespace fxjit::inline v0::torch_
