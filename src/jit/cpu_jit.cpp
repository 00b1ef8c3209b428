#include "jit/cpu_jit.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <atomic>

#include "jit/target_machines.h"
#include "support/errors.h"

namespace fxjit::inline v0::jit {
namespace {

using llvm::orc::ExecutionSession;
using llvm::orc::JITDylib;

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

template <class T>
T unwrap(llvm::Expected<T> value, const char* doing) {
  if (!value) throw InternalError(std::string(doing) + ": " + llvm::toString(value.takeError()));
  return std::move(*value);
}

void unwrap(llvm::Error error, const char* doing) {
  if (error) throw InternalError(std::string(doing) + ": " + llvm::toString(std::move(error)));
}

// Where the session reports what went wrong inside a lookup, which itself only says "failed to materialize". Links run
// on the thread that looks up, so one string per thread is enough.
std::string& link_log() {
  static thread_local std::string log;
  return log;
}

llvm::orc::SymbolMap symbol_map(ExecutionSession& session, std::span<const NamedAddress> entries) {
  llvm::orc::SymbolMap map;
  for (const NamedAddress& e : entries) {
    map[session.intern(e.name)] = {llvm::orc::ExecutorAddr::fromPtr(e.address), llvm::JITSymbolFlags::Exported};
  }
  return map;
}

// Host functions hold no vectors and must run where there are no kernels, too.
const CpuTarget& emitted_target(Profile profile, const CpuTarget& wanted) {
  return profile == Profile::Host ? baseline_target() : wanted;
}

std::vector<std::string> defined_functions(const llvm::Module& module) {
  std::vector<std::string> names;
  for (const llvm::Function& f : module) {
    if (!f.isDeclaration() && f.hasExternalLinkage()) names.push_back(f.getName().str());
  }
  return names;
}

void verify_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(module, &stream)) {
    text += "\n";
    module.print(stream, nullptr);
    throw InternalError("generated LLVM IR does not verify: " + text);
  }
}

}  // namespace

// The session's members in order of construction. `runtime` holds what every module may call.
struct CpuJit::Impl {
  ExecutionSession session;
  llvm::orc::ObjectLinkingLayer linker;
  JITDylib& runtime;
  MachinePool machines;
  std::atomic<uint64_t> next{0};

  static std::unique_ptr<llvm::orc::ExecutorProcessControl> control() {
    // In place: a link runs on the thread that asked for it, so no thread of LLVM's exists at a fork.
    return unwrap(
        llvm::orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<llvm::orc::InPlaceTaskDispatcher>()),
        "making the JIT session");
  }
  Impl() : session(control()), linker(session), runtime(session.createBareJITDylib("runtime")) {
    session.setErrorReporter([](llvm::Error e) { link_log() += llvm::toString(std::move(e)) + "; "; });
    unwrap(runtime.define(llvm::orc::absoluteSymbols(symbol_map(session, runtime_symbols()))),
           "defining the runtime's symbols");
  }

  MachinePool::Lease machine(Profile profile, const CpuTarget& target) {
    return machines.get({kTriple, target.cpu, target.features, profile});
  }
};

namespace {

// One JITDylib per module: names of different modules never meet, and dropping it frees code, mappings and symbols.
class LinkedCode final : public CompiledCode {
 public:
  LinkedCode(ExecutionSession& session, JITDylib& library) : session_(session), library_(library) {}
  ~LinkedCode() override {
    ForkGuard guard;
    llvm::consumeError(session_.removeJITDylib(library_));
  }

  void link(llvm::orc::ObjectLinkingLayer& linker, JITDylib& runtime, const Object& object,
            std::span<const NamedAddress> extra) {
    object_bytes_ = object.bytes.size();
    library_.addToLinkOrder(runtime);
    if (!extra.empty()) {
      unwrap(library_.define(llvm::orc::absoluteSymbols(symbol_map(session_, extra))), "defining symbols");
    }
    unwrap(linker.add(library_, llvm::MemoryBuffer::getMemBufferCopy(object.bytes, library_.getName())),
           "adding an object");
    llvm::orc::SymbolLookupSet wanted;
    for (const std::string& name : object.functions) wanted.add(session_.intern(name));
    link_log().clear();
    auto found = session_.lookup(llvm::orc::makeJITDylibSearchOrder(&library_), std::move(wanted));
    if (!found) {
      std::string why = llvm::toString(found.takeError());
      throw InternalError("linking generated code: " + std::exchange(link_log(), {}) + why);
    }
    symbols_.reserve(object.functions.size());
    for (const std::string& name : object.functions) {
      symbols_.push_back({name, (*found)[session_.intern(name)].getAddress().toPtr<const void*>()});
    }
  }

 private:
  ExecutionSession& session_;
  JITDylib& library_;
};

}  // namespace

const void* CompiledCode::address(std::string_view name) const {
  for (const NamedAddress& s : symbols_) {
    if (s.name == name) return s.address;
  }
  throw InternalError("the module defines no function " + std::string(name));
}

CpuJit& CpuJit::process() {
  static CpuJit& jit = *new CpuJit;  // leaked: code may run, and be freed, while the process exits
  return jit;
}

CpuJit::CpuJit() {
  ForkGuard guard;
  initialise_llvm();
  impl_ = new Impl;
}

void prepare(llvm::Module& module, Profile profile, const CpuTarget& target) {
  module.setTargetTriple(kTriple);
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  for (llvm::Function& f : module) {
    f.setDoesNotThrow();
    if (f.isDeclaration()) continue;
    f.removeFnAttr(llvm::Attribute::UWTable);  // with nounwind: no .eh_frame
    f.addFnAttr("frame-pointer", "all");       // profilers walk frame pointers instead
    f.addFnAttr("target-cpu", target.cpu);
    f.addFnAttr("target-features", target.features);
    // Stack probes would be calls, and our frames are small.
    if (profile == Profile::Host) f.addFnAttr(llvm::Attribute::OptimizeNone), f.addFnAttr(llvm::Attribute::NoInline);
  }
}

std::string target_data_layout(const CpuTarget& target) {
  ForkGuard guard;
  MachinePool machines;
  return machines.get({kTriple, target.cpu, target.features, Profile::Straight})
      ->createDataLayout()
      .getStringRepresentation();
}

Object CpuJit::compile(std::unique_ptr<llvm::Module> module, Profile profile, const CpuTarget& wanted, bool verify) {
  ForkGuard guard;
  const CpuTarget& target = emitted_target(profile, wanted);
  Object object{module->getName().str(), {}, defined_functions(*module)};
  MachinePool::Lease machine = impl_->machine(profile, target);
  prepare(*module, profile, target);
  module->setDataLayout(machine->createDataLayout());
  if (verify) verify_module(*module);
  object.bytes = emit(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  module.reset();
  return object;
}

std::shared_ptr<const CompiledCode> CpuJit::link(const Object& object, std::span<const NamedAddress> extra) {
  ForkGuard guard;
  const std::string name = object.name + "." + std::to_string(impl_->next++);
  auto code = std::make_shared<LinkedCode>(impl_->session, impl_->session.createBareJITDylib(name));
  code->link(impl_->linker, impl_->runtime, object, extra);
  return code;
}

std::shared_ptr<const CompiledCode> CpuJit::add(std::unique_ptr<llvm::Module> module, Profile profile,
                                                const CpuTarget& target, std::span<const NamedAddress> extra,
                                                bool verify) {
  return link(compile(std::move(module), profile, target, verify), extra);
}

std::string CpuJit::assembly(const llvm::Module& module, Profile profile, const CpuTarget& wanted) {
  ForkGuard guard;
  const CpuTarget& target = emitted_target(profile, wanted);
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  MachinePool::Lease machine = impl_->machine(profile, target);
  prepare(*copy, profile, target);
  copy->setDataLayout(machine->createDataLayout());
  return emit(*copy, *machine, llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace fxjit::inline v0::jit
