// Which expressions of a row kernel are the same along the row.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace fxjit::inline v0::kernel {

// One flag per expression: true where its value does not depend on the position along the last axis (reductions,
// scalars, loads that do not move, and what is made of these). Operands must be earlier expressions.
std::vector<bool> row_values_of(const Kernel& k);

}  // namespace fxjit::inline v0::kernel
