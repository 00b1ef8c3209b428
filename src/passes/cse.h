// Makes one of equal pure nodes, and of reads of one attribute. Two values that both reach the caller stay two, since
// eager returns two tensors there.
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> cse(PassContext& context);

}  // namespace fxjit::inline v0::passes
