// Small modules to compile, from LLVM's assembly language.
#pragma once

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace fxjit::test {

struct ParsedModule {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
};

inline ParsedModule parse_module(const std::string& text) {
  ParsedModule p;
  llvm::SMDiagnostic error;
  p.module = llvm::parseAssemblyString(text, error, *p.context);
  if (!p.module) throw std::runtime_error(error.getMessage().str() + " in " + text);
  return p;
}

}  // namespace fxjit::test
