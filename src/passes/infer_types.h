// Symbolic types for an imported graph. It carries what was observed, as constants. Where a rule exists the type
// becomes symbolic, in program order from the inputs; where there is none, or it disagrees with what was observed, the
// observed type stays and the sizes and strides that went into it are specialised: guarded to be what they were.
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> infer_types(PassContext& context);

// Symbols that a guard makes equal to a number become that number in all types, so that equal sizes are equal
// expressions again. Returns whether a type changed.
bool settle_sizes(PassContext& context);

}  // namespace fxjit::inline v0::passes
