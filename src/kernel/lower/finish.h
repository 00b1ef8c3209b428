// From expressions over the axes of a space to a kernel: axes ordered and merged, strides classified, work saved.
#pragma once

#include "kernel/lower/builder.h"

namespace fxjit::inline v0::kernel {

// Failure: the reduced dimensions cannot be merged into one axis, or are not the ones that lie closest in memory.
Result<Lowered> finish(Builder& b);

}  // namespace fxjit::inline v0::kernel
