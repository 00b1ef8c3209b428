// From a kernel to LLVM IR: one function in a module of its own.
#pragma once

#include <memory>
#include <string>

#include "codegen/schedule.h"
#include "codegen/target_hooks.h"
#include "kernel/kernel.h"

namespace fxjit::inline v0::codegen {

// A module with one externally visible function `symbol` of the target's kernel signature (on the CPU runtime/abi.h's
// fxjit_kernel), which reads its launch in the order of `k`. It may call memcpy and what runtime/abi.h declares. Units
// are blocks of schedule.block elements of the last axis at one index of the outer axes, the blocks of one outer index
// in a row; in row kernels they are rows. Results do not depend on how units are split among calls.
//
// Memory: elements are aligned to their size, no more, unless schedule.nontemporal. Outputs either do not overlap an
// input or are the same elements at the same places.
//
// `k` must verify; every Op's type must be in its row's domain. InternalError otherwise.
std::unique_ptr<llvm::Module> emit_kernel(llvm::LLVMContext& context, const kernel::Kernel& k, const Schedule& schedule,
                                          const TargetHooks& hooks, const std::string& symbol);

}  // namespace fxjit::inline v0::codegen
