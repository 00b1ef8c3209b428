// What passes over the typed graph have in common.
//
// In a typed graph each call_function target is a Callable whose qualified name is an ATen schema ("aten::add.Tensor"),
// with all arguments of the schema in order and no keyword arguments. A node with one tensor as result carries its
// TensorType; one with several is followed by _operator.getitem nodes that carry theirs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fxjit/fx/graph.h"
#include "fxjit/options.h"
#include "fxjit/sym.h"
#include "fxjit/tensor_type.h"
#include "support/result.h"

namespace fxjit::inline v0::passes {

struct PassContext {
  fx::GraphPtr graph;  // a pass may put another graph in its place
  ShapeEnv& env;
  const Options& options;
  std::vector<std::string> notes;  // reasons for what was not done, for explain(): "node: why"
  // From functionalize on: what writes are an aten::copy_ into an input before the output, and kernels.
  bool functional = false;
};

struct PassTime {
  std::string_view name;
  double milliseconds;
  bool changed;
};

// ValueError where the option `skip` names something that is no pass, or a pass without which programs would be wrong.
void check_skips(const Options& options);

// Runs the rows of passes.def but those that the options skip; times, dumps and verifies after each.
Result<std::vector<PassTime>> run_passes(PassContext& context);

// The schema name of a call_function node's target; empty for other nodes.
std::string_view schema_of(const fx::Node& n);
bool is_call(const fx::Node& n, std::string_view schema);

// Rules of the typed graph: lint, and a type on each node that is used as a tensor. InternalError.
void verify(const PassContext& context);

// A row of passes.def.
struct Pass {
  std::string_view name, what;
  Result<bool> (*run)(PassContext&);
};
std::span<const Pass> all_passes();
const Pass* find_pass(std::string_view name);  // null: there is none

}  // namespace fxjit::inline v0::passes
