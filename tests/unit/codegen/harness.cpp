#include "harness.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <chrono>

#include "codegen/cpu/cpu_hooks.h"
#include "codegen/emit_kernel.h"

namespace fxjit::test {

std::vector<const jit::CpuTarget*> targets() {
  std::vector<const jit::CpuTarget*> out;
  for (const jit::CpuTarget* t : {&jit::avx512_target(), &jit::avx2_target()}) {
    if (jit::runs_here(*t)) out.push_back(t);
  }
  return out;
}

codegen::Schedule default_schedule(const kernel::Kernel& k, const jit::CpuTarget& target) {
  return codegen::choose_schedule(k, codegen::schedule_options(target.name));
}

std::string emit_text(const kernel::Kernel& k, const jit::CpuTarget& target, const codegen::Schedule& schedule) {
  llvm::LLVMContext context;
  auto module = codegen::emit_kernel(context, k, schedule, *codegen::find_cpu_hooks(target.name), "kernel");
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

Compiled compile(const kernel::Kernel& k, const jit::CpuTarget& target, std::optional<codegen::Schedule> schedule) {
  kernel::verify(k);
  Compiled c{k, schedule ? *schedule : default_schedule(k, target), nullptr, nullptr, 0};
  const auto start = std::chrono::steady_clock::now();
  llvm::LLVMContext context;
  auto module = codegen::emit_kernel(context, k, c.schedule, *codegen::find_cpu_hooks(target.name), "kernel");
  const auto profile =
      c.schedule.profile == codegen::Profile::Carrying ? jit::Profile::Carrying : jit::Profile::Straight;
  c.code = jit::CpuJit::process().add(std::move(module), profile, target);
  c.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  c.function = c.code->symbol<fxjit_kernel>("kernel");
  return c;
}

void run(const Compiled& c, const std::vector<void*>& pointers, const std::vector<int64_t>& extents,
         const std::vector<int64_t>& strides, const std::vector<uint64_t>& scalars, int cuts) {
  fxjit_launch launch{pointers.data(),
                      extents.data(),
                      strides.data(),
                      scalars.data(),
                      codegen::blocks_per_outer(c.k, c.schedule, extents.data()),
                      FXJIT_OK};
  const int64_t units = codegen::unit_count(c.k, c.schedule, extents.data());
  for (int i = 0; i < cuts; ++i) c.function(units * i / cuts, units * (i + 1) / cuts, &launch);
}

}  // namespace fxjit::test
