// What a target decides. The shared emitters (builder, math, loops, rows) ask these hooks and never which target it
// is; cpu/ and nvptx/ implement them.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string>

#include "fxjit/dtype.h"

namespace fxjit::inline v0::codegen {

// Constant folding stays on, nothing else: the text of a kernel is what its emitter wrote.
using Ir = llvm::IRBuilder<>;

// What TargetMachine wants to know; also part of the kernel's cache key.
struct TargetDescription {
  std::string triple;
  std::string cpu;          // e.g. "x86-64-v3", "sm_80"
  std::string features;     // explicit, with minus entries: the host's own features never decide
  std::string data_layout;  // equal to TargetMachine::createDataLayout()
  bool operator==(const TargetDescription&) const = default;
};

// Fields of fxjit_launch. A target reads them from memory, or from kernel parameters.
enum class LaunchField : uint8_t { Pointer, Extent, Stride, Scalar, Blocks };

// Where a kernel's loops run. Units go from `begin` below `end` by `unit_step`; inside a unit (or a row) this
// worker's steps start at element `inner_begin` and advance by `inner_step` times the elements of a step.
// All are i64. CPU: the function's begin and end, 1, 0, 1. GPU: blockIdx, units, gridDim, threadIdx, blockDim.
struct Iteration {
  llvm::Value* begin = nullptr;
  llvm::Value* end = nullptr;
  llvm::Value* unit_step = nullptr;
  llvm::Value* inner_begin = nullptr;
  llvm::Value* inner_step = nullptr;
};

struct TargetHooks {
  virtual ~TargetHooks() = default;

  virtual TargetDescription description() const = 0;

  // Lanes of one vector: 16 on the CPU. 1: values are plain scalars, and there are no masks: a step past the end is
  // branched over.
  virtual int lanes() const = 0;

  // Vector registers, counted in vectors of `lanes` x 32 bits: 32 with AVX-512, 8 with AVX2 (a vector is two).
  virtual int registers() const = 0;

  // Declares the kernel with its signature, calling convention, attributes; adds nothing to its body. The module's
  // triple and data layout are set already. On the CPU: void symbol(i64 begin, i64 end, ptr launch), nounwind.
  virtual llvm::Function* declare_kernel(llvm::Module& m, const std::string& symbol) const = 0;

  // Both are asked for in the entry block. `index` counts as in fxjit_launch (Stride: buffer * axes + axis).
  // Pointer fields come as ptr (of the target's address space), the others as i64.
  virtual Iteration iteration(Ir& b, llvm::Function& f) const = 0;
  virtual llvm::Value* launch_field(Ir& b, llvm::Function& f, LaunchField field, int index) const = 0;

  // May masked loads and stores of elements of that many bits be used as they are? Where not, tails go through a
  // 64-byte stack buffer. Asked only where lanes() > 1.
  virtual bool has_masked_access(unsigned bits) const = 0;
  // The same for llvm.masked.gather and llvm.masked.scatter; where not, lanes are moved one by one.
  virtual bool has_gather(unsigned bits) const = 0;
  virtual bool has_scatter(unsigned bits) const = 0;

  // --- arithmetic on float, <lanes x float> and their integer images ---

  // x * 2^n with one rounding, for |n| <= 300 holding an integer, results down to denormals and up to infinity.
  virtual llvm::Value* scale_by_power_of_two(Ir& b, llvm::Value* x, llvm::Value* n) const = 0;

  // float <-> the storage of a half type (half, or i16 for bfloat16), rounding to nearest even, NaN stays NaN.
  virtual llvm::Value* half_to_float(Ir& b, llvm::Value* bits, DType half) const = 0;
  virtual llvm::Value* float_to_half(Ir& b, llvm::Value* x, DType half) const = 0;

  // Floating to integer as eager does on this device, out of range and NaN included; never poison.
  // `to`: an integer type; u8 is the only unsigned one.
  virtual llvm::Value* float_to_int(Ir& b, llvm::Value* x, DType to) const = 0;

  // max/min that are NaN where an operand is. Sign of zero as eager's: whichever operand.
  virtual llvm::Value* fmax(Ir& b, llvm::Value* x, llvm::Value* y) const = 0;
  virtual llvm::Value* fmin(Ir& b, llvm::Value* x, llvm::Value* y) const = 0;
};

}  // namespace fxjit::inline v0::codegen
