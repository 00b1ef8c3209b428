// Removes pure nodes that nobody uses. Random, mutating and opaque calls stay: Callable::is_impure says which.
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> dce(PassContext& context);

}  // namespace fxjit::inline v0::passes
