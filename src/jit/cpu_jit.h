// Machine code in this process: a module goes in, callable code comes out, and is freed with its last user.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/cpu_target.h"

namespace llvm {
class Module;
}

namespace fxjit::inline v0::jit {

// How a module is to be turned into machine code.
enum class Profile : uint8_t {
  Straight,  // loops that carry nothing but a counter: selection DAG without optimisation
  Carrying,  // rows and sums: a trimmed -O1, whose register allocator keeps carried values in registers
  Host,      // the host function: fast selection, 10 us a node, and for any x86-64 whatever the target
};

struct NamedAddress {
  std::string name;
  const void* address = nullptr;
};

// What a module was compiled to, not yet linked.
struct Object {
  std::string name;                    // of the module
  std::string bytes;                   // an ELF file
  std::vector<std::string> functions;  // that others may call
};

// The linked code of one module. Whoever may run it holds a reference: the last one unmaps it.
class CompiledCode {
 public:
  virtual ~CompiledCode() = default;
  CompiledCode(const CompiledCode&) = delete;
  CompiledCode& operator=(const CompiledCode&) = delete;

  // The address of an externally visible function of the module; InternalError if there is none of that name.
  const void* address(std::string_view name) const;
  // The same as a function pointer: symbol<fxjit_kernel>("k").
  template <class Fn>
  Fn symbol(std::string_view name) const {
    return reinterpret_cast<Fn>(const_cast<void*>(address(name)));
  }
  size_t object_bytes() const { return object_bytes_; }  // size of the object file it was linked from

 protected:
  CompiledCode() = default;
  std::vector<NamedAddress> symbols_;
  size_t object_bytes_ = 0;
};

// Compiles and links modules. One per process (the session of LLVM's linker is never destroyed: code may run at exit);
// all functions may be called from several threads at once, and in the child of a fork.
class CpuJit {
 public:
  static CpuJit& process();

  // The object file of `module`, which is consumed; its context may be dropped when this returns. Triple, data layout,
  // CPU, nounwind and frame pointers are set here. InternalError for a module that does not verify (`verify`).
  Object compile(std::unique_ptr<llvm::Module> module, Profile profile, const CpuTarget& target, bool verify = true);

  // Links it. What it does not define must be in `extra` or in runtime_symbols(); InternalError otherwise.
  std::shared_ptr<const CompiledCode> link(const Object& object, std::span<const NamedAddress> extra = {});

  // link(compile(module)).
  std::shared_ptr<const CompiledCode> add(std::unique_ptr<llvm::Module> module, Profile profile,
                                          const CpuTarget& target, std::span<const NamedAddress> extra = {},
                                          bool verify = true);

  // The assembly of what add() would link. Leaves `module` as it was.
  std::string assembly(const llvm::Module& module, Profile profile, const CpuTarget& target);

 private:
  CpuJit();
  ~CpuJit() = delete;
  struct Impl;
  Impl* impl_;
};

// Sets what a module needs before it is emitted: triple, data layout; for each function nounwind and frame pointers.
void prepare(llvm::Module& module, Profile profile, const CpuTarget& target);

// The data layout of all modules that are compiled for the target.
std::string target_data_layout(const CpuTarget& target);

// What any module may call: the list of runtime/abi.h.
std::span<const NamedAddress> runtime_symbols();

// Held while LLVM works: a fork waits for it, so that the child never inherits a lock of LLVM's in use. Cheap, shared,
// and may be nested.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
};

}  // namespace fxjit::inline v0::jit
