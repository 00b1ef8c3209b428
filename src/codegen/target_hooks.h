// What a target decides. The shared emitters (builder, math, loops, rows) ask these hooks and never which target it
// is; cpu/ and nvptx/ implement them. The arithmetic hooks have portable definitions that a target may better.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string>

#include "fxjit/dtype.h"

namespace fxjit::inline v0::codegen {

// Constants are folded and nothing else: the text of a kernel is what its emitter wrote.
using Ir = llvm::IRBuilder<>;

// What a module says of its target. On the CPU the JIT (jit/cpu_target.h) owns processor and features, and sets the
// data layout again from its TargetMachine.
struct TargetDescription {
  std::string triple;
  std::string cpu;       // e.g. "sm_80"; empty: the JIT's own
  std::string features;  // explicit, with minus entries: the host's own features never decide
  std::string data_layout;
  bool operator==(const TargetDescription&) const = default;
};

// Fields of fxjit_launch. A target reads them from memory, or from kernel parameters.
enum class LaunchField : uint8_t { Pointer, Extent, Stride, Scalar, Blocks };

// Where a kernel's loops run. Units go from `begin` below `end` by `unit_step`; inside a unit this worker's steps
// start at element `inner_begin` and advance by `inner_step` times the elements of a step. All are i64.
// CPU: the function's begin and end, 1, 0, 1. GPU: blockIdx, units, gridDim, threadIdx, blockDim.
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

  // Lanes of one vector: 16 on the CPU. 1: values are plain scalars and there are no masks: the loop's condition
  // keeps a worker from a step past the end, and inner_step interleaves the workers.
  virtual int lanes() const = 0;

  // Vector registers, counted in vectors of `lanes` x 32 bits: 32 with AVX-512, 8 with AVX2 (a vector is two).
  virtual int registers() const = 0;

  // Declares the kernel with its signature, calling convention, attributes; adds nothing to its body. The module's
  // triple and data layout are set already. On the CPU: void symbol(i64 begin, i64 end, ptr launch), nounwind.
  virtual llvm::Function* declare_kernel(llvm::Module& m, const std::string& symbol) const = 0;

  // Does a worker run consecutive units (unit_step is 1)?
  virtual bool consecutive_units() const { return lanes() > 1; }

  // Both are asked for in the entry block. `index` counts as in fxjit_launch (Stride: buffer * axes + axis).
  // Pointer fields come as ptr (of the target's address space), the others as i64.
  virtual Iteration iteration(Ir& b, llvm::Function& f) const = 0;
  virtual llvm::Value* launch_field(Ir& b, llvm::Function& f, LaunchField field, int index) const = 0;

  // May masked loads and stores of elements of that many bits be used? Where not, lanes go through a stack buffer.
  // Asked only where lanes() > 1.
  virtual bool has_masked_access(unsigned) const { return false; }

  // Are masks cheap to carry round a loop as they are? Where not, they are carried as integers of the compared width.
  virtual bool has_mask_registers() const { return false; }

  // Tells the launch that there was no memory for scratch, before a return. Asked only where lanes() > 1.
  virtual void report_no_memory(Ir&, llvm::Function&) const {}

  // Called before the return of a kernel that made non-temporal stores.
  virtual void fence_nontemporal(Ir&) const {}

  // ---- arithmetic: x is float or <lanes x float> unless said otherwise ----

  // x * 2^n with one rounding, for 0.5 <= |x| <= 2 and n holding an integer, |n| <= 160; results down to denormals and
  // zero and up to infinity; NaN where x is. `image` is n + 1.5 * 2^23, whose low mantissa bits hold n unless it is
  // NaN.
  virtual llvm::Value* scale_by_power_of_two(Ir& b, llvm::Value* x, llvm::Value* n, llvm::Value* image) const;

  // Does scale_by_power_of_two take any n, infinities included? Then exponentials need no clamped argument, only a
  // remainder that stays small: bound_remainder gives r, limited to +-limit, and +-limit where r is NaN.
  virtual bool scales_by_any_power() const { return false; }
  virtual llvm::Value* bound_remainder(Ir& b, llvm::Value* r, double limit) const;

  // x = m * 2^e, 0.75 <= m < 1.5, e an integral float, denormals too. 0 gives (1, -inf), +inf (1, inf); NaN and
  // negative numbers give m = NaN.
  virtual std::pair<llvm::Value*, llvm::Value*> split_exponent(Ir& b, llvm::Value* x) const;

  // Half types live in registers as floats that hold their values. From storage (half; i16 for bfloat16), to storage
  // (x is representable), and the nearest representable value, ties to even; NaN stays NaN.
  virtual llvm::Value* half_from_storage(Ir& b, llvm::Value* bits, DType half) const;
  virtual llvm::Value* half_to_storage(Ir& b, llvm::Value* x, DType half) const;
  virtual llvm::Value* round_to_half(Ir& b, llvm::Value* x, DType half) const;

  // Floating (float or double) to an integer type as eager does on this device, out of range and NaN included, never
  // poison. UInt8 is the only unsigned one. The default is x86's rule: what does not fit gives the smallest integer
  // of the 32- or 64-bit conversion that eager's code uses, narrower types take its low bits.
  virtual llvm::Value* float_to_int(Ir& b, llvm::Value* x, DType to) const;

  // x > y ? x : y and x < y ? x : y: y where either is NaN. float or double, vectors of any length.
  virtual llvm::Value* raw_max(Ir& b, llvm::Value* x, llvm::Value* y) const;
  virtual llvm::Value* raw_min(Ir& b, llvm::Value* x, llvm::Value* y) const;

  // NaN where an operand is, else x > y ? x : y and x < y ? x : y (of two zeros the second). float or double.
  virtual llvm::Value* fmax(Ir& b, llvm::Value* x, llvm::Value* y) const;
  virtual llvm::Value* fmin(Ir& b, llvm::Value* x, llvm::Value* y) const;
};

}  // namespace fxjit::inline v0::codegen
