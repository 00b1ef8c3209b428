// What `forward` is given: the tensors and numbers of a typed program with what is guarded of them.
#pragma once

#include <optional>

#include "codegen/forward/specialised_plan.h"
#include "driver/compile.h"
#include "torch/aten_call.h"

namespace fxjit::inline v0::driver {

// Fills everything but the kernels' schedules. `graph` is the final one; its placeholders are the inputs in order, as
// passes keep them.
void list_inputs(const torch_::TypedProgram& program, const fx::Graph& graph, const CompileRequest& request,
                 codegen::ForwardInputs* inputs);

// The word of frame->symbols that holds a number, for callees; empty for other arguments.
std::optional<torch_::SymbolRef> symbol_of(const codegen::ForwardInputs& inputs, const fx::Argument& a);

}  // namespace fxjit::inline v0::driver
