// Operand values for the table-driven tests.
#pragma once

#include <vector>

#include "ops/value.h"

namespace fxjit::inline v0::ops {

// Values of type `t`, specials first (zeros, ones, infinities, NaN, subnormals, extremes), then a deterministic spread
// over the set's range. About 200 for a floating type, 60 for an integer one, 2 for bool.
std::vector<Value> samples(Samples set, DType t);

}  // namespace fxjit::inline v0::ops
