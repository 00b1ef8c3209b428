// What an elementwise call gives without computing: a call whose value is an operand's (x * 1, half to float and back)
// becomes that operand, one whose elements are all the same number (ones_like(x) * 2) becomes full_like of it. The
// kernel floor decides, on the same rows that kernels are made of, so only exact operators fold.
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> fold(PassContext& context);

}  // namespace fxjit::inline v0::passes
