#include "jit/kernel_cache.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <atomic>
#include <cstdio>
#include <optional>

#include "codegen/cpu/cpu_hooks.h"
#include "codegen/emit_kernel.h"
#include "jit/object_cache.h"
#include "jit/ptx_compiler.h"
#include "jit/target_machines.h"
#include "support/dump.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/log.h"
#include "support/timer.h"

namespace fxjit::inline v0::jit {
namespace {

struct EmittedKernel {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
};

// FNV-1a; names only, equality rests on the key itself.
std::string symbol_of(const std::string& key) {
  uint64_t h = 0xcbf29ce484222325;
  for (const unsigned char c : key) h = (h ^ c) * 0x100000001b3;
  char text[32];
  std::snprintf(text, sizeof text, "kernel_%016llx", static_cast<unsigned long long>(h));
  return text;
}

EmittedKernel emit(const kernel::Kernel& k, const codegen::Schedule& schedule, const CpuTarget& target,
                   const std::string& symbol) {
  const codegen::TargetHooks* hooks = codegen::find_cpu_hooks(target.name);
  FXJIT_CHECK(hooks != nullptr, "no emitter for the target ", target.name);
  kernel::verify(k);
  EmittedKernel e;
  e.module = codegen::emit_kernel(*e.context, k, schedule, *hooks, symbol);
  return e;
}

Profile profile_of(const codegen::Schedule& schedule) {
  switch (schedule.profile) {
    case codegen::Profile::Straight:
      return Profile::Straight;
    case codegen::Profile::Carrying:
      return Profile::Carrying;
  }
  return Profile::Straight;
}

void dump(const support::Dump& to, const kernel::Kernel& k, const EmittedKernel& e, const KernelHandle& h,
          const codegen::Schedule& schedule, const CpuTarget& target) {
  using support::DumpStage;
  if (to.wants(DumpStage::Kernel)) to.write(DumpStage::Kernel, h.symbol, kernel::print(k));
  if (to.wants(DumpStage::Llvm)) to.write(DumpStage::Llvm, h.symbol, text_of(*e.module));
  if (to.wants(DumpStage::Asm)) {
    to.write(DumpStage::Asm, h.symbol, CpuJit::process().assembly(*e.module, profile_of(schedule), target));
  }
  if (!to.wants(DumpStage::Ptx)) return;
  const Result<PtxKernel> ptx = compile_ptx(k, choose_gpu_schedule(k, schedule.fast_math), 80);
  to.write(DumpStage::Ptx, h.symbol, ptx ? ptx->text : "// no PTX: " + ptx.reason());
}

// The user loses speed, not results: one warning is enough.
template <class T>
void warn_once(const Result<T>& result) {
  static std::atomic<bool> warned{false};
  if (!result && !warned.exchange(true)) support::warn("fxjit: " + result.reason());
}

std::optional<ObjectCache> disk_of(const Options& options) {
  if (options.cache == "off" || options.cache.empty()) return std::nullopt;
  Result<ObjectCache> opened = ObjectCache::open(options.cache);
  warn_once(opened);
  return opened ? std::optional(*opened) : std::nullopt;
}

}  // namespace

std::string kernel_key(const kernel::Kernel& k, const codegen::Schedule& schedule, const CpuTarget& target) {
  return support::concat(kernel::print(k), "\nschedule ", codegen::print(schedule), "\ntarget ", target.name, " ",
                         target.cpu, " ", target.features, "\nbuild ", build_id(), "\nllvm ", LLVM_VERSION_STRING);
}

Result<const CpuTarget*> target_for(const Options& options) {
  Result<const CpuTarget*> host = host_target();
  if (!host || options.target == "auto") return host;
  const CpuTarget* named = find_target(options.target);
  FXJIT_CHECK(named != nullptr, "an option that was not checked: target=", options.target);
  if (runs_here(*named)) return named;
  return Failure{support::concat("this machine cannot run target=", named->name, "; its best is ", (*host)->name)};
}

KernelCache& KernelCache::process() {
  static KernelCache& cache = *new KernelCache;  // leaked like the JIT: its code may run at exit
  return cache;
}

Result<KernelHandle> KernelCache::get(const kernel::Kernel& k, const codegen::Schedule& schedule,
                                      const Options& options) {
  Result<const CpuTarget*> target = target_for(options);
  if (!target) return target.failure();
  ForkGuard guard;  // so that a fork never inherits mutex_ in use
  const std::string key = kernel_key(k, schedule, **target);
  {
    std::lock_guard lock(mutex_);
    if (const KernelHandle* h = find(key)) return *h;
  }
  support::Timer timer;
  KernelHandle h;
  h.symbol = symbol_of(key);
  const std::optional<ObjectCache> disk = disk_of(options);
  std::optional<std::string> kept;
  if (disk && options.dump.empty()) kept = disk->load(key);  // a dump shows what is compiled: nothing may be skipped
  Object object{h.symbol, {}, {h.symbol}};
  if (kept) {
    h.from_disk = true;
    object.bytes = *std::move(kept);
  } else {
    support::fault_point(options, "codegen");
    EmittedKernel e = emit(k, schedule, **target, h.symbol);
    if (!options.dump.empty()) dump(support::Dump(options.dump), k, e, h, schedule, **target);
    support::fault_point(options, "jit");
    object = CpuJit::process().compile(std::move(e.module), profile_of(schedule), **target, options.verify);
    if (disk) warn_once(disk->store(key, object.bytes));
  }
  h.code = CpuJit::process().link(object);
  h.function = h.code->symbol<fxjit_kernel>(h.symbol);
  h.compile_ms = timer.milliseconds();
  return insert(key, std::move(h));
}

KernelHandle* KernelCache::find(const std::string& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  used_.splice(used_.begin(), used_, it->second.place);
  return &it->second.handle;
}

// Of two threads that compiled the same kernel the first one's stays.
KernelHandle KernelCache::insert(const std::string& key, KernelHandle handle) {
  std::lock_guard lock(mutex_);
  if (const KernelHandle* first = find(key)) return *first;
  auto [it, inserted] = entries_.emplace(key, Entry{handle, {}});
  it->second.handle.was_cached = true;  // for those who find it
  used_.push_front(&it->first);
  it->second.place = used_.begin();
  if (entries_.size() > capacity_) {
    const auto oldest = entries_.find(*used_.back());
    used_.pop_back();
    entries_.erase(oldest);
  }
  return handle;
}

size_t KernelCache::size() const {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  return entries_.size();
}

void KernelCache::clear() {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  used_.clear();
  entries_.clear();
}

Result<KernelHandle> get_kernel(const kernel::Kernel& k, const codegen::Schedule& schedule, const Options& options) {
  return KernelCache::process().get(k, schedule, options);
}

std::string kernel_llvm(const kernel::Kernel& k, const codegen::Schedule& schedule, const CpuTarget& target) {
  ForkGuard guard;
  return text_of(*emit(k, schedule, target, symbol_of(kernel_key(k, schedule, target))).module);
}

std::string kernel_assembly(const kernel::Kernel& k, const codegen::Schedule& schedule, const CpuTarget& target) {
  ForkGuard guard;
  const EmittedKernel e = emit(k, schedule, target, symbol_of(kernel_key(k, schedule, target)));
  return CpuJit::process().assembly(*e.module, profile_of(schedule), target);
}

}  // namespace fxjit::inline v0::jit
