// Kernels that are compiled already, and those that are about to be.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "codegen/schedule.h"
#include "fxjit/options.h"
#include "jit/cpu_jit.h"
#include "kernel/kernel.h"
#include "runtime/abi.h"
#include "support/result.h"

namespace fxjit::inline v0::jit {

// A compiled kernel; whoever holds it may run it.
struct KernelHandle {
  fxjit_kernel function = nullptr;
  std::shared_ptr<const CompiledCode> code;
  std::string symbol;       // of the function: "kernel_" and a hash of the key
  double compile_ms = 0;    // of the compilation that made it
  bool was_cached = false;  // it was made for an earlier request
  bool from_disk = false;   // an earlier process compiled it (option `cache`)
};

// All that the machine code of a kernel depends on: canonical text, schedule, target with its features, the build of
// this library, LLVM's version. Also what the cache on disk keeps it under.
std::string kernel_key(const kernel::Kernel& k, const codegen::Schedule& schedule, const CpuTarget& target);

// The target that the options ask for: a Failure below x86-64-v3, or where this machine cannot run the one named.
Result<const CpuTarget*> target_for(const Options& options);

// Thread-safe. Bounded: beyond `capacity` the least recently used goes; its code lives on with those who hold it.
class KernelCache {
 public:
  explicit KernelCache(size_t capacity = 1024) : capacity_(capacity) {}
  static KernelCache& process();

  // Compiles `k`, unless it is here or in the folder of options.cache; a folder that cannot be used is warned of once
  // in the process. Failure where there is no compiled kernel on this machine. Dumps what it compiles if options.dump
  // says so. InternalError for a kernel that does not verify or cannot be emitted.
  Result<KernelHandle> get(const kernel::Kernel& k, const codegen::Schedule& schedule, const Options& options);

  size_t size() const;
  void clear();

 private:
  struct Entry {
    KernelHandle handle;
    std::list<const std::string*>::iterator place;  // in used_; points to the map's key
  };
  KernelHandle* find(const std::string& key);
  KernelHandle insert(const std::string& key, KernelHandle handle);

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  std::list<const std::string*> used_;  // most recently used first
};

// KernelCache::process().get.
Result<KernelHandle> get_kernel(const kernel::Kernel& k, const codegen::Schedule& schedule, const Options& options);

// What the kernel is compiled from and to; made anew at each call.
std::string kernel_llvm(const kernel::Kernel& k, const codegen::Schedule& schedule, const CpuTarget& target);
std::string kernel_assembly(const kernel::Kernel& k, const codegen::Schedule& schedule, const CpuTarget& target);

// The identity of this library's binary: the linker's build id in hex, or the version where there is none.
const std::string& build_id();

}  // namespace fxjit::inline v0::jit
