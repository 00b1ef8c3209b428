#pragma once

#include "codegen/forward/body.h"

namespace fxjit::inline v0::codegen {

// Launches of kernels inside one function: a fxjit_launch on the stack, which all of them use in turn.
class Launcher {
 public:
  explicit Launcher(Body& body) : body_(body) {}

  // Makes room on the stack for the largest of the steps. Before the first launch.
  void reserve(const SpecialisedStep* begin, const SpecialisedStep* end);

  // Allocates the results, fills the launch, runs the kernel. `index` is the step's.
  void launch(const SpecialisedStep& step, int32_t index);

 private:
  struct Shape {
    llvm::Value* units;
    llvm::Value* blocks;
    llvm::Value* inner;  // iterations of the last axis
  };

  void allocate(const SpecialisedStep& step);
  std::vector<llvm::Value*> pointers(const SpecialisedStep& step, const kernel::KernelCall& call);
  void fill(const kernel::KernelCall& call, const std::vector<llvm::Value*>& addresses);
  llvm::Value* scalar_bits(const kernel::KernelCall& call, size_t i);
  Shape shape(const kernel::KernelCall& call, const Schedule& schedule);
  llvm::Value* grain(const kernel::KernelCall& call, const Schedule& schedule, const Shape& s);
  llvm::Value* function(const SpecialisedStep& step, int32_t index, const std::vector<llvm::Value*>& addresses);
  llvm::Value* may_bypass_cache(const kernel::KernelCall& call, int64_t bytes,
                                const std::vector<llvm::Value*>& addresses);
  void bump_versions(const SpecialisedStep& step, const kernel::KernelCall& call);
  int32_t operand_value(const SpecialisedStep& step, const kernel::BufferBinding& b) const;
  llvm::FunctionType* kernel_type();

  Body& body_;
  llvm::Value* launch_ = nullptr;    // fxjit_launch
  llvm::Value* pointers_ = nullptr;  // the arrays that it points to
  llvm::Value* extents_ = nullptr;
  llvm::Value* strides_ = nullptr;
  llvm::Value* scalars_ = nullptr;
  llvm::Value* sizes_ = nullptr;  // for table->empty: sizes, then strides
  llvm::Value* out_ = nullptr;    // where it puts the address
};

}  // namespace fxjit::inline v0::codegen
