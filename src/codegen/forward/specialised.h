// The specialised form of `forward`: guards, sizes, memory, kernels and calls as one program.
#pragma once

#include "codegen/forward/host_module.h"
#include "codegen/forward/specialised_plan.h"

namespace fxjit::inline v0::codegen {

// `i32 forward(ptr frame, ptr in, ptr scalars, ptr out)`, see fxjit_specialised in runtime/abi.h. Callees of kind
// Kernel have the index 2 * step, or 2 * step + 1 for the nontemporal variant.
HostModule emit_specialised(const fx::Graph& typed, const ShapeEnv& env, const ForwardInputs& inputs,
                            const SpecialisedPlan& plan, bool readable = true);

}  // namespace fxjit::inline v0::codegen
