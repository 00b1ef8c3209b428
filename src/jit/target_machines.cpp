#include "jit/target_machines.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetOptions.h>

#include <array>

#include "support/errors.h"

namespace fxjit::inline v0::jit {
namespace {

// Passes of `Less` that cost more than they bring: with them a row kernel takes 2 to 3 times as long to compile and
// runs no faster (0.94 to 1.03 of g++ without them). Options of LLVM are global, so they are set once, never per
// module; what runs at O0 contains none of these passes.
constexpr std::array kDisabled = {"disable-lsr",
                                  "disable-cgp",
                                  "disable-mergeicmps",
                                  "disable-constant-hoisting",
                                  "disable-partial-libcall-inlining",
                                  "disable-machine-sink",
                                  "disable-tail-duplicate",
                                  "disable-early-taildup",
                                  "disable-block-placement",
                                  "disable-branch-fold",
                                  "disable-early-ifcvt",
                                  "disable-ssc",
                                  "disable-postra-machine-sink",
                                  "disable-postra-machine-licm"};

void set_option(const char* name, const char* value) {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto it = options.find(name);
  FXJIT_CHECK(it != options.end(), std::string("LLVM has no option -") + name);
  const bool failed = it->second->addOccurrence(0, name, value);
  FXJIT_CHECK(!failed, std::string("LLVM refuses -") + name + "=" + value);
}

llvm::CodeGenOptLevel level_of(Profile profile) {
  switch (profile) {
    case Profile::Straight:
    case Profile::Host:
      return llvm::CodeGenOptLevel::None;
    case Profile::Carrying:
      return llvm::CodeGenOptLevel::Less;
  }
  return llvm::CodeGenOptLevel::None;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const MachineKey& key) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(key.triple, error);
  FXJIT_CHECK(target != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a * b + c rounds twice, as written
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(key.triple, key.cpu, key.features, options,
                                                                           llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                           level_of(key.profile), /*JIT=*/true));
  FXJIT_CHECK(machine != nullptr, "no target machine for " + key.triple + ", " + key.cpu);
  const bool fast = key.profile == Profile::Host;
  machine->setO0WantsFastISel(fast);
  machine->setFastISel(fast);
  return machine;
}

}  // namespace

void initialise_llvm() {
  static const bool done = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    for (const char* name : kDisabled) set_option(name, "true");
    set_option("enable-shrink-wrap", "false");
    return true;
  }();
  (void)done;
}

MachinePool::Lease MachinePool::get(MachineKey key) {
  initialise_llvm();
  {
    std::lock_guard lock(mutex_);
    for (auto& entry : free_) {
      if (entry.first == key) {
        std::unique_ptr<llvm::TargetMachine> machine = std::move(entry.second);
        entry = std::move(free_.back());
        free_.pop_back();
        return {*this, std::move(key), std::move(machine)};
      }
    }
  }
  std::unique_ptr<llvm::TargetMachine> machine = make_machine(key);
  return {*this, std::move(key), std::move(machine)};
}

void MachinePool::put(MachineKey key, std::unique_ptr<llvm::TargetMachine> machine) {
  std::lock_guard lock(mutex_);
  free_.emplace_back(std::move(key), std::move(machine));
}

std::string emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  const bool failed = machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true);
  FXJIT_CHECK(!failed, "LLVM cannot emit files for " + machine.getTargetTriple().str());
  passes.run(module);
  return {buffer.data(), buffer.size()};
}

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace fxjit::inline v0::jit
