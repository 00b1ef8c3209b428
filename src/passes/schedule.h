// The order of a graph after its nodes were contracted or moved.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::passes {

// Where a node would like to be: the smaller first. Nodes that are missing keep their place in the graph.
using Priorities = std::unordered_map<const fx::Node*, int64_t>;

// (first, second): the first one comes before the second, though it is no operand of it.
using OrderEdges = std::vector<std::pair<fx::Node*, fx::Node*>>;

// Puts each node behind its operands, as near to its priority as that allows. Nodes with effects keep their order, and
// aten::copy_ stays behind everything but the output. InternalError for a cycle.
void reorder(fx::Graph& graph, const Priorities& priorities, const OrderEdges& edges);

// True if `to` is `from` or depends on it, by operands or order edges; also where finding out takes more than `budget`
// steps.
bool may_depend(const fx::Node& to, const fx::Node& from, const OrderEdges& edges, int budget);

}  // namespace fxjit::inline v0::passes
