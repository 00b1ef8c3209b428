// The recorded call of a graph: an interpreter run with one scope of the recorder per node.
#pragma once

#include <span>

#include "driver/function.h"
#include "driver/graph_inputs.h"
#include "fxjit/fx/graph_module.h"

namespace fxjit::inline v0::driver {

// A copy of the graph with the composites inlined that may be: not leaves, not impure. The interpreter runs those whose
// body cannot be traced here.
fx::GraphPtr inline_for_recording(const fx::Graph& graph);

// Runs `graph` (which has the placeholders of the program) under `recording` and finishes it. Exceptions of the program
// come through; nothing is compiled then.
fx::Value record_graph(fx::GraphModule& root, const fx::Graph& graph, std::span<const fx::Value> bound,
                       Recording& recording);

// Runs a graph in the interpreter: what a call does while somebody else records.
fx::Value interpret_graph(fx::GraphModule& root, const fx::Graph& graph, std::span<const fx::Value> bound);

}  // namespace fxjit::inline v0::driver
