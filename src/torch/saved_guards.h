// Guards of saved graphs: conditions on the inputs under which the graph is the traced program (docs/file-format.md).
#pragma once

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::torch_ {

// Makes the graph check the guards of a file's entry before it computes anything: an AssertionError says which does not
// hold, what was traced, and that another trace is needed. One that this program cannot evaluate does not hold.
void add_guards(fx::Graph& graph, const fx::Value& guards);
// Whether it does so.
bool has_guards(const fx::Graph& graph);

}  // namespace fxjit::inline v0::torch_
