// Numbers that a program is called with, found again in its record: which scalar of which ATen call is which number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/forward/number.h"
#include "torch/recorder.h"

namespace fxjit::inline v0::torch_ {

// One number of the call: given to it, or computed from others before it is used.
struct CallNumber {
  bool is_float = true;
  uint64_t bits = 0;  // of the double or int64
  std::optional<codegen::NumberExpr> derived;
  double value() const;
};

// How one scope uses numbers.
struct ScopeNumbers {
  std::vector<int32_t> numbers;  // among the arguments of its callee
  std::vector<double> literals;  // ints and floats among them
  bool binds = false;            // the callee hands its arguments to operators and does nothing else with them
};

struct NumberTable {
  std::vector<CallNumber> numbers;
  std::map<int32_t, ScopeNumbers> scopes;  // by the recorder's scope; those without numbers are absent
};

struct BoundNumbers {
  std::vector<bool> baked;    // by number: the record holds for this value only
  std::vector<bool> bounded;  // by number: bound as a float, good for bfloat16's range and infinities
  std::map<std::pair<size_t, size_t>, int32_t> arguments;  // (call, argument) -> number
};

// A scalar is a number's if it has its value and can be nothing else: no literal of the scope, no default of the
// schema, no other number; and if the number shows once in the scope, in an elementwise operator, which hands on
// nothing of it but values. Everything else that may rest on a number bakes it: scalars of unknown origin, numbers
// that do not show, lists.
BoundNumbers bind_numbers(const Recorder& recorder, const NumberTable& table);

}  // namespace fxjit::inline v0::torch_
