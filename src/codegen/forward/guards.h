#pragma once

#include "codegen/forward/body.h"

namespace fxjit::inline v0::codegen {

// Compares all that the specialisation rests on with what the call brings; on a difference the function returns
// FXJIT_GUARD. Nothing is done before. Afterwards every field that Body reads of an input is what its type says.
void emit_guards(Body& body);

}  // namespace fxjit::inline v0::codegen
