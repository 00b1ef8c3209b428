// Passes over FX graphs, and what they are made of.
#pragma once

#include <span>
#include <vector>

#include "fxjit/fx/graph.h"
#include "fxjit/fx/graph_module.h"
#include "fxjit/fx/interpreter.h"

namespace fxjit::inline v0::fx {

// Replaces each call_function and call_method that computes what an earlier one does: same target, same arguments,
// equal in type as well as value. Calls with effects, random ones and those for which `banned` is true stay, and so
// does everything before the last call that writes to its arguments: two equal values may come to differ there. Returns
// how many were replaced. Linear.
FXJIT_API size_t eliminate_common_subexpressions(Graph& graph, FunctionRef<bool(const Node&)> banned = {});

// The calls whose value depends on attributes and constants alone, with the get_attr nodes that they read, in program
// order. Calls with effects, random ones, and those for which `skip` is true, do not. Linear.
FXJIT_API std::vector<Node*> constant_nodes(const Graph& graph, FunctionRef<bool(const Node&)> skip = {});

// Computes the constant nodes once and replaces those that others read by attributes named _folded_constant_<i>. What
// they were computed from stays as it is: fold again after changing it. Returns how many attributes were made; errors
// of the computation pass through, and leave the graph as it was. Values that are no objects (numbers) are put in
// place.
FXJIT_API size_t fold_constants(GraphModule& module, OperatorResolver* resolver = nullptr,
                                FunctionRef<bool(const Node&)> skip = {});

// Part of a graph as a module of its own, sharing attributes with `module`.
struct Part {
  GraphModuleRef module;
  std::vector<Node*> inputs;   // nodes outside that it reads, in program order: its placeholders, by their names
  std::vector<Node*> outputs;  // its nodes that others read: the items of the tuple it returns
};

// `nodes` in any order; get_attr nodes that they read are copied along. A node nobody reads is an output as well.
// ValueError if a path between two of them leads through a node outside, for placeholders and outputs, and for none.
FXJIT_API Part extract_part(GraphModule& module, std::span<Node* const> nodes);

}  // namespace fxjit::inline v0::fx
