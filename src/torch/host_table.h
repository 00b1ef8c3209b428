// Runs a specialised `forward`: the boundary between ATen's world of owned tensors and exceptions and generated code.
#pragma once

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <span>

#include "torch/host_program.h"
#include "torch/host_state.h"

namespace fxjit::inline v0::torch_ {

// `in` are borrowed, in the program's order; `out` receives owned references (NULL where forward left one empty).
// Returns false where a guard did not hold: nothing was done. Exceptions of callees are rethrown as they are; the slots
// and `out` are empty then. `state` is what frame->words shows to the guards: included keys, excluded keys, flags.
// Thread-safe: each call has its own frame.
bool run_specialised(fxjit_specialised forward, const HostProgram& program, std::span<c10::TensorImpl* const> in,
                     const int64_t* scalars, std::span<c10::TensorImpl*> out, const HostState& state);

}  // namespace fxjit::inline v0::torch_
