#include "codegen/forward/host_module.h"

#include <llvm/IR/AssemblyAnnotationWriter.h>
#include <llvm/Support/FormattedStream.h>
#include <llvm/Support/raw_ostream.h>

#include <unordered_map>

#include "runtime/abi.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

// Names of user functions become symbols: what an assembler or LLVM's name escape (\1) would trip over goes.
std::string symbol_of(std::string_view label) {
  std::string s(label);
  for (char& c : s) {
    if (static_cast<unsigned char>(c) < ' ' || c == '"') c = '?';
  }
  return s.empty() ? "?" : s;
}

void write_comment(const std::string& text, const char* indent, llvm::formatted_raw_ostream& out) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out << indent << "; " << llvm::StringRef(text).slice(begin, end) << "\n";
    begin = end + 1;
  }
}

class CommentWriter final : public llvm::AssemblyAnnotationWriter {
 public:
  explicit CommentWriter(const std::unordered_map<const llvm::Value*, std::string>& comments) : comments_(comments) {}
  void emitFunctionAnnot(const llvm::Function* f, llvm::formatted_raw_ostream& out) override { write(f, "", out); }
  void emitInstructionAnnot(const llvm::Instruction* i, llvm::formatted_raw_ostream& out) override {
    write(i, "  ", out);
  }

 private:
  void write(const llvm::Value* v, const char* indent, llvm::formatted_raw_ostream& out) {
    const auto it = comments_.find(v);
    if (it != comments_.end()) write_comment(it->second, indent, out);
  }
  const std::unordered_map<const llvm::Value*, std::string>& comments_;
};

}  // namespace

HostModule::HostModule(std::string_view name, bool readable)
    : context_(std::make_unique<llvm::LLVMContext>()),
      module_(std::make_unique<llvm::Module>(llvm::StringRef(name.data(), name.size()), *context_)) {
  context_->setDiscardValueNames(!readable);
  // x86-64's: without it an i64 would count as aligned to 4 bytes.
  module_->setDataLayout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128");
}

llvm::Function* HostModule::define(const std::string& name, llvm::Type* result,
                                   std::initializer_list<const char*> parameters, bool internal) {
  const std::vector<llvm::Type*> types(parameters.size(), ptr());
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                                   internal ? llvm::Function::InternalLinkage : llvm::Function::ExternalLinkage, name,
                                   *module_);
  f->setDoesNotThrow();
  size_t i = 0;
  for (const char* p : parameters) f->getArg(i++)->setName(p);
  return f;
}

llvm::Function* HostModule::callee(CalleeKind kind, std::string_view label, llvm::FunctionType* type, int32_t index) {
  std::string symbol = symbol_of(label);
  auto [it, inserted] = declared_.try_emplace({kind, symbol, index});
  if (!inserted) return it->second;
  // Create gives another name where the module has one of this name already.
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, *module_);
  f->setDoesNotThrow();
  callees_.push_back({f->getName().str(), kind, index});
  return it->second = f;
}

std::string HostModule::text() const {
  FXJIT_CHECK(module_ != nullptr, "the text of a module that was given away");
  std::string text;
  llvm::raw_string_ostream stream(text);
  std::unordered_map<const llvm::Value*, std::string> comments(headings_.begin(), headings_.end());
  for (const auto& [where, node] : nodes_) comments[where] = node->format_node();
  CommentWriter writer(comments);
  module_->print(stream, &writer);
  return text;
}

HostFunction::HostFunction(HostModule& module, llvm::Function* function)
    : host_(module), function_(function), ir_(llvm::BasicBlock::Create(module.context(), "entry", function)) {}

int64_t HostFunction::slots_offset() { return offsetof(fxjit_frame, slots); }

llvm::Value* HostFunction::at(llvm::Value* p, int64_t bytes) {
  return bytes == 0 ? p : ir_.CreateInBoundsPtrAdd(p, host_.i64(bytes));
}

llvm::Value* HostFunction::load(llvm::Type* type, llvm::Value* p, int64_t bytes, const llvm::Twine& name) {
  return ir_.CreateLoad(type, at(p, bytes), name);
}

void HostFunction::store(llvm::Value* value, llvm::Value* p, int64_t bytes) { ir_.CreateStore(value, at(p, bytes)); }

llvm::Value* HostFunction::mul(llvm::Value* a, llvm::Value* b) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(a); c && c->isOne()) return b;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(b); c && c->isOne()) return a;
  return ir_.CreateMul(a, b);
}

llvm::Value* HostFunction::advance(llvm::Value* p, llvm::Value* bytes, const llvm::Twine& name) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(bytes); c && c->isZero()) return p;
  return ir_.CreatePtrAdd(p, bytes, name);
}

void HostFunction::check(llvm::Value* status) {
  if (!exit_) {
    exit_ = llvm::BasicBlock::Create(host_.context(), "failed", function_);
    failed_ = llvm::PHINode::Create(host_.i32(), 8, "status", exit_);
    llvm::ReturnInst::Create(host_.context(), failed_, exit_);
  }
  failed_->addIncoming(status, ir_.GetInsertBlock());
  auto* next = llvm::BasicBlock::Create(host_.context(), "", function_, exit_);
  ir_.CreateCondBr(ir_.CreateICmpEQ(status, host_.i32(0)), next, exit_);
  ir_.SetInsertPoint(next);
}

llvm::BasicBlock* HostFunction::return_block(int32_t status) {
  llvm::BasicBlock*& block = returns_[status];
  if (!block) {
    block = llvm::BasicBlock::Create(host_.context(), status == FXJIT_GUARD ? "other" : "give_up", function_);
    llvm::ReturnInst::Create(host_.context(), host_.i32(status), block);
  }
  return block;
}

void HostFunction::require(llvm::Value* condition, int32_t status) {
  llvm::BasicBlock* otherwise = return_block(status);
  auto* next = llvm::BasicBlock::Create(host_.context(), "", function_, exit_ ? exit_ : otherwise);
  ir_.CreateCondBr(condition, next, otherwise);
  ir_.SetInsertPoint(next);
}

void HostFunction::release(int32_t slot) {
  auto* type = llvm::FunctionType::get(ir_.getVoidTy(), {host_.ptr(), host_.i32()}, false);
  ir_.CreateCall(host_.callee(CalleeKind::Release, "release", type), {frame(), host_.i32(slot)});
}

void HostFunction::finish() { ir_.CreateRet(host_.i32(0)); }

}  // namespace fxjit::inline v0::codegen
