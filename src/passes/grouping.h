// Which operators share a kernel. Groups are disjoint, so nothing is computed twice, and contracting each of them to
// one node leaves the graph without cycles.
#pragma once

#include <unordered_map>
#include <vector>

#include "passes/fusion_graph.h"

namespace fxjit::inline v0::passes {

// Groups of members in program order each, in the order of their first members.
//
// Greedy: each operator joins the groups of its operands where their spaces unify; then groups over the same space that
// read one operand are joined. A merge that would make a cycle, or whose check would walk more than a bounded part of
// the graph, is left out, so the whole is linear in nodes and edges.
std::vector<std::vector<fx::Node*>> find_groups(const fx::Graph& graph, const FusionGraph& fusion);

// Compile time grows with a kernel's size, and registers are few.
inline constexpr size_t kMaxGroup = 64;

}  // namespace fxjit::inline v0::passes
