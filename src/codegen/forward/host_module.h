// What both forms of `forward` are written with: functions of pointers, i64 and i32, calls whose status is checked,
// fields of the frame, and comments that the printed text shows.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/fx/node.h"

namespace fxjit::inline v0::codegen {

inline constexpr int64_t kWord = 8;  // bytes of a pointer, an i64, a double

// What a declared function stands for when the module is linked.
enum class CalleeKind : uint8_t {
  Call,          // i32 (ptr frame, i32 node): table->call
  Release,       // void (ptr frame, i32 slot): table->release
  Runtime,       // a function of runtime/abi.h, by its own name
  Kernel,        // a compiled kernel; `index` says which
  RequiresGrad,  // i1 (ptr tensor): the host's answer, see ForwardInputs
};

struct Callee {
  std::string symbol;
  CalleeKind kind = CalleeKind::Call;
  int32_t index = -1;
};

// One module, being written. Movable, so that an emitter can return it.
class HostModule {
 public:
  // Without `readable` values have no names: half the time of emission, and nobody looks at what is only compiled.
  HostModule(std::string_view name, bool readable);

  llvm::LLVMContext& context() { return *context_; }
  llvm::Module& module() { return *module_; }
  std::unique_ptr<llvm::Module> take_module() { return std::move(module_); }
  const std::vector<Callee>& callees() const { return callees_; }

  llvm::Type* ptr() { return llvm::PointerType::getUnqual(*context_); }
  llvm::IntegerType* i64() { return llvm::Type::getInt64Ty(*context_); }
  llvm::IntegerType* i32() { return llvm::Type::getInt32Ty(*context_); }
  llvm::ConstantInt* i64(int64_t v) { return llvm::ConstantInt::getSigned(i64(), v); }
  llvm::ConstantInt* i32(int32_t v) { return llvm::ConstantInt::getSigned(i32(), v); }

  // A function of this module. Parameters are all ptr and named as given.
  llvm::Function* define(const std::string& name, llvm::Type* result, std::initializer_list<const char*> parameters,
                         bool internal);
  // A declared function, the same one for the same label and index. Its symbol is the label, made unique where a
  // function of this module has that name.
  llvm::Function* callee(CalleeKind kind, std::string_view label, llvm::FunctionType* type, int32_t index = -1);

  // Shown above the function or instruction by text(); the node as its line in the printed graph.
  void comment(const llvm::Function* where, std::string lines) { headings_.emplace_back(where, std::move(lines)); }
  void comment(const llvm::Value* where, const fx::Node& node) { nodes_.emplace_back(where, &node); }
  std::string text() const;

 private:
  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::Module> module_;
  std::vector<Callee> callees_;
  std::map<std::tuple<CalleeKind, std::string, int32_t>, llvm::Function*> declared_;
  std::vector<std::pair<const llvm::Function*, std::string>> headings_;
  std::vector<std::pair<const llvm::Value*, const fx::Node*>> nodes_;
};

// The body of one function whose calls return a status.
class HostFunction {
 public:
  // `frame` is the function's first argument. The function returns 0 at the end, see finish().
  HostFunction(HostModule& module, llvm::Function* function);

  HostModule& host() { return host_; }
  llvm::Function* function() { return function_; }
  llvm::Value* frame() { return function_->getArg(0); }
  llvm::IRBuilder<>& ir() { return ir_; }

  // p + bytes, and the load or store of a field there. `align` in bytes.
  llvm::Value* at(llvm::Value* p, int64_t bytes);
  llvm::Value* load(llvm::Type* type, llvm::Value* p, int64_t bytes, const llvm::Twine& name = "");
  void store(llvm::Value* value, llvm::Value* p, int64_t bytes);
  // Without an instruction where the operand is the constant that changes nothing: host code is not optimised.
  llvm::Value* mul(llvm::Value* a, llvm::Value* b);
  llvm::Value* advance(llvm::Value* p, llvm::Value* bytes, const llvm::Twine& name = "");
  llvm::Value* slots() { return load(host_.ptr(), frame(), slots_offset(), "slots"); }

  // Goes on only where `status` is 0; else returns it.
  void check(llvm::Value* status);
  // Goes on only where `condition` holds; else returns `status`.
  void require(llvm::Value* condition, int32_t status);
  void release(int32_t slot);
  // Ends the function: returns 0.
  void finish();

 private:
  static int64_t slots_offset();
  llvm::BasicBlock* return_block(int32_t status);

  HostModule& host_;
  llvm::Function* function_;
  llvm::IRBuilder<> ir_;
  llvm::BasicBlock* exit_ = nullptr;  // returns the status that failed
  llvm::PHINode* failed_ = nullptr;
  std::map<int32_t, llvm::BasicBlock*> returns_;
};

}  // namespace fxjit::inline v0::codegen
