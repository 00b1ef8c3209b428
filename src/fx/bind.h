// Arguments of a call to the placeholders of a graph.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::fx {

// One entry for each placeholder that `wanted` does not refuse, in order. `*args` takes the rest as a Tuple, `**kwargs`
// the rest as a Dict. RuntimeError for a missing argument, TypeError for extra and unknown ones.
std::vector<std::pair<Node*, Argument>> bind_arguments(const Graph& graph, std::span<const Argument> args,
                                                       const Argument& kwargs,
                                                       FunctionRef<bool(const Node*)> wanted = {});

}  // namespace fxjit::inline v0::fx
