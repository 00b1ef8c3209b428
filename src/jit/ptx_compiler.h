// Kernels for the GPU, as PTX text: the driver of the machine that runs them makes machine code of it.
#pragma once

#include <string>
#include <vector>

#include "codegen/schedule.h"
#include "kernel/kernel.h"
#include "support/result.h"

namespace fxjit::inline v0::jit {

struct PtxKernel {
  std::string symbol;
  std::string text;
  int threads = 256;  // of a block; more than a unit has elements would idle
  double compile_ms = 0;
};

// How the schedule of a kernel for the GPU is chosen: one element a thread, units of 1024 elements.
codegen::Schedule choose_gpu_schedule(const kernel::Kernel& k, bool fast_math = false);

// `sm` is 80 (which runs on everything newer too) or 90. The parameters are those of codegen/nvptx/nvptx_hooks.h.
// Failure for kernels with a reduction: they have no GPU form yet.
Result<PtxKernel> compile_ptx(const kernel::Kernel& k, const codegen::Schedule& schedule, int sm);

// The LLVM IR that the text is made from.
Result<std::string> ptx_llvm(const kernel::Kernel& k, const codegen::Schedule& schedule, int sm);

}  // namespace fxjit::inline v0::jit
