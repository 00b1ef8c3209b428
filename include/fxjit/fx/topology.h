// Orders and cycles of nodes. Linear in the nodes and edges that are visited.
#pragma once

#include <span>
#include <vector>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::fx {

// The nodes in an order in which each one comes behind those of its inputs that are among them: Kahn's algorithm, first
// in first out. AssertionError if the nodes depend on each other in a circle or one occurs twice.
FXJIT_API std::vector<Node*> topo_sort(std::span<Node* const> nodes);

// Whether the nodes may become one node: false if a path leads from one of them through an outside node back into them.
FXJIT_API bool validate_partition(std::span<Node* const> nodes);
// The same for many groups without common nodes at once: false if the graph would have a cycle with each group made
// one.
FXJIT_API bool validate_partitions(const Graph& graph, std::span<const std::vector<Node*>> groups);

FXJIT_API bool is_topologically_sorted(const Graph& graph);
// Moves nodes, in place, so that each one stands behind its inputs; of those that may come next, the one that stood
// first does. AssertionError naming the nodes that lie on or behind a cycle.
FXJIT_API void stable_topological_sort(Graph& graph);
// The same in the order of torch.fx's legalize_graph: first in first out, except that nodes for which `urgent` is true
// come next as soon as they may. RuntimeError for a cycle.
FXJIT_API void legalize_graph(Graph& graph, FunctionRef<bool(const Node&)> urgent = {});

}  // namespace fxjit::inline v0::fx
