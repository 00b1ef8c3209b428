// What a kernel costs on one thread, roughly: decides only whether threads are worth waking, never what is computed.
#pragma once

#include "kernel/kernel.h"

namespace fxjit::inline v0::codegen {

// Nanoseconds per iteration of the inner axis, data in cache.
double estimate_ns_per_element(const kernel::Kernel& k);

// Work that runs on one thread because a second one would not pay: a parallel region of 2 threads costs 1.0 to 1.3 us,
// and its caches are cold. Also the least that a thread gets.
inline constexpr double kGrainNanoseconds = 8000;

}  // namespace fxjit::inline v0::codegen
