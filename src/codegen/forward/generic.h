// The generic form of `forward`: any graph, any callee, any shape. One call per node through the frame's table.
#pragma once

#include "codegen/forward/forward_plan.h"
#include "codegen/forward/host_module.h"

namespace fxjit::inline v0::codegen {

// `i32 forward(ptr frame, ptr in, ptr out)`. Each node is a call `status = callee(frame, step)`, named after the node;
// the callee's symbol is callee_label. Returns the first status that is not FXJIT_OK. Code comes in functions of at
// most 256 nodes: values live in the frame's slots, so that each is compiled in time linear in its nodes.
HostModule emit_generic(const fx::Graph& graph, const ForwardPlan& plan, bool readable = true);

}  // namespace fxjit::inline v0::codegen
