// Groups to kernels: lowering, splitting where it refuses, and nodes that launch the result.
#pragma once

#include <vector>

#include "kernel/lower/lower.h"
#include "passes/fusion_graph.h"
#include "passes/schedule.h"

namespace fxjit::inline v0::passes {

struct FusedGroup {
  std::vector<fx::Node*> members;  // in program order
  std::vector<fx::Node*> outputs;  // those that somebody outside reads
  kernel::Lowered lowered;
};

// Lowers each group; where that is refused, the longest part from the front that can be, and then the rest. A single
// operator that is refused stays a call, with the reason in the context's notes.
std::vector<FusedGroup> lower_groups(PassContext& context, const FusionGraph& fusion,
                                     const std::vector<std::vector<fx::Node*>>& groups);

// Makes a node per group behind all others of the graph (the order is not right yet), and erases the members. Views
// that only kernels looked through are left without users. A kernel gets the priority of its last member.
void replace_groups(PassContext& context, const std::vector<FusedGroup>& groups, Priorities& priorities);

}  // namespace fxjit::inline v0::passes
