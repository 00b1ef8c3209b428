// Calls that give back their operand become the operand: to() a type that it has, contiguous() of what is, dropout
// outside training. detach() and alias() make another tensor over the same memory: they stay where the caller gets it.
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> canonicalize(PassContext& context);

}  // namespace fxjit::inline v0::passes
