// Compiles kernels for each target that this machine runs, and runs them on plain memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule.h"
#include "jit/cpu_jit.h"
#include "jit/cpu_target.h"
#include "kernel/kernel.h"
#include "runtime/abi.h"

namespace fxjit::test {

struct Compiled {
  kernel::Kernel k;
  codegen::Schedule schedule;
  std::shared_ptr<const jit::CompiledCode> code;
  fxjit_kernel function = nullptr;
  double milliseconds = 0;
};

// avx512 where this machine has it, avx2 where it has that.
std::vector<const jit::CpuTarget*> targets();

codegen::Schedule default_schedule(const kernel::Kernel& k, const jit::CpuTarget& target);
std::string emit_text(const kernel::Kernel& k, const jit::CpuTarget& target, const codegen::Schedule& schedule);
Compiled compile(const kernel::Kernel& k, const jit::CpuTarget& target,
                 std::optional<codegen::Schedule> schedule = std::nullopt);

// strides: [buffer][axis], in elements. `cuts`: the units are run in that many calls.
void run(const Compiled& c, const std::vector<void*>& pointers, const std::vector<int64_t>& extents,
         const std::vector<int64_t>& strides = {}, const std::vector<uint64_t>& scalars = {}, int cuts = 1);

}  // namespace fxjit::test
