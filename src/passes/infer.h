// Types of results from types of operands: the operator table's rules, and those of calls that have no row but whose
// sizes follow from their operands'.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

// The type of what a call_function node gives; its operands have types. Failure: no rule, or the rule refuses.
// Questions about sizes that the expressions leave open are answered from the hints and become guards.
Result<TensorTypePtr> infer(const fx::Node& n, ShapeEnv& env);

// Whether `infer` knows the schema.
bool has_rule(std::string_view schema);

// The results of a call without a row, one type each; empty where no rule is known or it refuses.
std::optional<std::vector<TensorTypePtr>> infer_call(const fx::Node& n, ShapeEnv& env);
bool has_call_rule(std::string_view schema);

// How split, chunk and unbind cut one dimension: each result is operand.slice(dim, start, end), for unbind with the
// dimension gone. Empty for other calls. The dimension's size becomes a guard where it is a symbol: it decides how many
// results there are.
struct Part {
  int64_t start, end;
};
struct Parts {
  int64_t dim;  // from 0
  bool select;
  std::vector<Part> parts;
};
std::optional<Parts> parts_of(const fx::Node& n, ShapeEnv& env);

}  // namespace fxjit::inline v0::passes
