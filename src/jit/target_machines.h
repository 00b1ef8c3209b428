// LLVM TargetMachines, of which a thread needs one to itself.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "jit/cpu_jit.h"

namespace fxjit::inline v0::jit {

// What a machine is made from.
struct MachineKey {
  std::string triple, cpu, features;
  Profile profile = Profile::Straight;
  bool operator==(const MachineKey&) const = default;
};

// Machines that are not in use; as many are made as threads ask at once (making one costs about 0.1 ms).
class MachinePool {
 public:
  class Lease {
   public:
    Lease(MachinePool& pool, MachineKey key, std::unique_ptr<llvm::TargetMachine> machine)
        : pool_(pool), key_(std::move(key)), machine_(std::move(machine)) {}
    ~Lease() { pool_.put(std::move(key_), std::move(machine_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    llvm::TargetMachine& operator*() const { return *machine_; }
    llvm::TargetMachine* operator->() const { return machine_.get(); }

   private:
    MachinePool& pool_;
    MachineKey key_;
    std::unique_ptr<llvm::TargetMachine> machine_;
  };

  // InternalError if LLVM knows no such triple.
  Lease get(MachineKey key);

 private:
  void put(MachineKey key, std::unique_ptr<llvm::TargetMachine> machine);
  std::mutex mutex_;
  std::vector<std::pair<MachineKey, std::unique_ptr<llvm::TargetMachine>>> free_;
};

// Registers the targets with LLVM and trims its code generation pipeline, once per process.
void initialise_llvm();

// Runs the code generator. The module is altered by it (and useless afterwards).
std::string emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type);

// LLVM IR as text.
std::string text_of(const llvm::Module& module);

}  // namespace fxjit::inline v0::jit
