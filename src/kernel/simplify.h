// Kernel to kernel: the same bits with less work.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace fxjit::inline v0::kernel {

// Which buffers and scalars of the argument are left, by their old numbers; launches keep those.
struct Kept {
  std::vector<int32_t> buffers, scalars;
};

// Folds constants (exact operators only: functions of math.def may differ from the emitted ones in the last bit), drops
// casts that change nothing, multiplications by one and the like, merges equal expressions, and removes what no store
// needs, inputs and scalars included.
Kept simplify(Kernel& k);

// True where each value of `from` is a value of `to`.
bool is_exact_cast(DType from, DType to);

}  // namespace fxjit::inline v0::kernel
