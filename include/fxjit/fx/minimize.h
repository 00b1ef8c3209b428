// Finds the nodes at which two ways to run a graph differ.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fxjit/fx/transform.h"

namespace fxjit::inline v0::fx {

// Runs a part of the graph; returns the tuple of its outputs. An exception counts as a difference.
using RunPart = std::function<Value(GraphModule& part, std::span<const Value> inputs)>;
// Whether two values of one output are equal enough.
using EqualValues = std::function<bool(const Value& a, const Value& b)>;

enum class MinimizeMethod : uint8_t {
  Sequential,  // every node by itself
  Binary,      // halves of what differs: about 2·log2(n) runs where one node differs
  Accumulate,  // from the first node on, one more each time: finds differences that take several nodes
};

struct MinimizeOptions {
  MinimizeMethod method = MinimizeMethod::Binary;
  bool find_all = false;  // not with Accumulate: what follows a difference differs
};

struct MinimizeResult {
  // In program order; those that were run together where their parts do not differ by themselves. Empty: no difference.
  std::vector<Node*> culprits;
  std::vector<std::string> log;  // a line for each part that was run
};

// The inputs of each part are the values that `run_a` gives for the nodes before it, so that one difference does not
// become many. `inputs`: one per placeholder. ValueError for another number of them, and for Accumulate with find_all;
// an error of `run_a` on the whole graph passes through.
FXJIT_API MinimizeResult minimize(GraphModule& module, std::span<const Value> inputs, const RunPart& run_a,
                                  const RunPart& run_b, const EqualValues& equal, const MinimizeOptions& options = {});

}  // namespace fxjit::inline v0::fx
