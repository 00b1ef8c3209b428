// Conditions on the sizes of a call's tensors, under which a captured program is the right one.
#pragma once

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <span>
#include <vector>

namespace fxjit::inline v0::python {

// One step of a condition in postfix form.
//   'c'  pushes the constant `value`
//   's'  pushes size `value` of tensor `input`; a negative one counts from the end
//   'd'  pushes the rank of tensor `input`
//   + - * / %  and  = ! < l > g  (==, !=, <, <=, >, >=) take two values; division rounds down, as Python's does
struct SizeStep {
  char operation;
  size_t input;
  int64_t value;
};

using SizeGuard = std::vector<SizeStep>;

// Whether the steps are a condition: they leave one value, and need no more than kSizeGuardDepth at a time.
bool is_size_guard(const SizeGuard& guard, size_t inputs);

// Whether the condition holds. What cannot be computed (a size that is not there, overflow, division by zero) doesn't.
bool holds(const SizeGuard& guard, std::span<c10::TensorImpl* const> tensors);

}  // namespace fxjit::inline v0::python
