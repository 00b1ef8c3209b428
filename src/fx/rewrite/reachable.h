// Whether a set of nodes can be left and entered again. Used by the matcher, which asks for each match.
#pragma once

#include <span>
#include <unordered_set>

#include "fxjit/fx/node.h"

namespace fxjit::inline v0::fx {

// True if a path leads from `nodes` (the elements of `inside`) through a node outside back into them. With `last` the
// graph is sorted and no node of the set that has outside inputs stands behind `last`: only what stands before it is
// visited. Counts edges in `steps`.
bool reenters(std::span<Node* const> nodes, const std::unordered_set<const Node*>& inside, const Node* last,
              uint64_t& steps);

}  // namespace fxjit::inline v0::fx
