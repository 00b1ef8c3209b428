#include "jit/ptx_compiler.h"

#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdio>

#include "codegen/emit_kernel.h"
#include "codegen/nvptx/nvptx_hooks.h"
#include "jit/target_machines.h"
#include "support/errors.h"
#include "support/timer.h"

namespace fxjit::inline v0::jit {
namespace {

struct GpuModule {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  codegen::TargetDescription target;
};

std::string symbol_of(const kernel::Kernel& k) {
  char text[32];
  std::snprintf(text, sizeof text, "kernel_%016llx", static_cast<unsigned long long>(kernel::hash(k)));
  return text;
}

Result<GpuModule> emit_module(const kernel::Kernel& k, const codegen::Schedule& schedule, int sm) {
  if (k.has_reduction()) return Failure{"reductions have no GPU kernels yet"};
  kernel::verify(k);
  const std::unique_ptr<codegen::TargetHooks> hooks = codegen::make_nvptx_hooks(sm, k);
  GpuModule m;
  m.target = hooks->description();
  m.module = codegen::emit_kernel(*m.context, k, schedule, *hooks, symbol_of(k));
  std::string why;
  llvm::raw_string_ostream stream(why);
  FXJIT_CHECK(!llvm::verifyModule(*m.module, &stream), why, "\n", text_of(*m.module));
  return m;
}

}  // namespace

codegen::Schedule choose_gpu_schedule(const kernel::Kernel& k, bool fast_math) {
  codegen::ScheduleOptions options;
  options.lanes = 1;
  options.fast_math = fast_math;
  return codegen::choose_schedule(k, options);
}

Result<PtxKernel> compile_ptx(const kernel::Kernel& k, const codegen::Schedule& schedule, int sm) {
  ForkGuard guard;
  static MachinePool& machines = *new MachinePool;  // leaked, like the session
  support::Timer timer;
  Result<GpuModule> m = emit_module(k, schedule, sm);
  if (!m) return m.failure();
  PtxKernel result;
  result.symbol = symbol_of(k);
  // The assembler optimises again whatever it gets: -O1 is for its speed, and for the size of the text.
  const MachinePool::Lease machine =
      machines.get({m->target.triple, m->target.cpu, m->target.features, Profile::Carrying});
  result.text = emit(*m->module, *machine, llvm::CodeGenFileType::AssemblyFile);
  result.compile_ms = timer.milliseconds();
  return result;
}

Result<std::string> ptx_llvm(const kernel::Kernel& k, const codegen::Schedule& schedule, int sm) {
  ForkGuard guard;
  Result<GpuModule> m = emit_module(k, schedule, sm);
  if (!m) return m.failure();
  return text_of(*m->module);
}

}  // namespace fxjit::inline v0::jit
