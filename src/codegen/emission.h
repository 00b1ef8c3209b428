// What the loop and row emitters share: the function under construction, its launch, its buffers, its expressions.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/builder.h"
#include "codegen/schedule.h"
#include "kernel/kernel.h"

namespace fxjit::inline v0::codegen {

// What an expression depends on: how often it must be computed.
enum class Level : uint8_t {
  Launch,   // constants, scalars, extents
  Unit,     // also loads that do not move along the last axis, and results of reductions
  Element,  // loads that do
};

// One step of the last axis: `vectors` vectors from element `index` on.
struct Step {
  llvm::Value* index = nullptr;      // i64
  llvm::Value* remaining = nullptr;  // i64, at least 1: elements that are left; null: the step is full
  llvm::Value* mask = nullptr;       // of a single vector, with `remaining`
};

class Emission {
 public:
  Emission(llvm::LLVMContext& context, const kernel::Kernel& k, const Schedule& s, const TargetHooks& hooks,
           const std::string& symbol);

  const kernel::Kernel& k;
  const Schedule& schedule;
  const TargetHooks& hooks;
  std::unique_ptr<llvm::Module> module;
  llvm::Function* function = nullptr;
  Builder b;
  Iteration iteration;

  std::vector<Level> levels;  // per expression
  std::vector<char> needed;   // per expression: a store depends on it
  std::vector<Vec> values;    // per expression, as far as they are known where `b` stands

  size_t outer_axes() const { return k.axes.empty() ? 0 : k.axes.size() - 1; }
  llvm::Value* inner_extent() const { return extents.back(); }
  std::vector<llvm::Value*> extents;  // i64 per axis; one, 1, for a kernel without axes

  kernel::StrideClass inner_stride(int buffer) const;

  // Calls `body` for each unit of this worker, with the buffers pointing at its index of the outer axes. Each index has
  // `blocks` units, and `body` gets the number of its own among them; null: one, and it gets the number of the unit.
  void each_unit(llvm::Value* blocks, llvm::function_ref<void(llvm::Value* block)> body, const char* name);

  // Computes into `values` the needed expressions of `level` (hoisted code for Launch and Unit). `only`, if not null,
  // restricts to the expressions it marks.
  void evaluate(Level level, const Step* step, const std::vector<char>* only = nullptr);

  // Masks and counts of a step of one vector from `index` on, `end` excluded.
  Step partial_step(llvm::Value* index, llvm::Value* end);

  Vec load(int buffer, const Step& step);
  void store(int buffer, const Vec& value, const Step& step);     // value has the buffer's type
  llvm::Value* base(int buffer) const { return bases_[buffer]; }  // at the current unit
  // A value of type `t` at base[index...], contiguous; used for what rows keep between passes.
  Vec load_contiguous(llvm::Value* base, DType t, const Step& step);
  void store_contiguous(llvm::Value* base, DType t, const Vec& value, const Step& step, bool nontemporal);

  // for (i = from; i <= last; i += by) carried = body(i, carried); i is signed. Returns the last `i` not run and the
  // carried values. `b` then stands after the loop.
  using LoopBody = llvm::function_ref<void(llvm::Value* i, llvm::MutableArrayRef<llvm::Value*> carried)>;
  llvm::Value* loop(llvm::Value* from, llvm::Value* last, llvm::Value* by, llvm::MutableArrayRef<llvm::Value*> carried,
                    LoopBody body, const char* name);

  llvm::BasicBlock* new_block(const char* name);
  llvm::Value* i64(int64_t v) { return b.ir.getInt64(v); }

 private:
  Vec evaluate_one(const kernel::Expr& e, const Step* step);
  Vec load_uniform(int buffer);
  Vec from_storage(std::vector<llvm::Value*> parts, DType t);
  std::vector<llvm::Value*> to_storage(const Vec& value, DType t);
  std::vector<llvm::Value*> read_strided(int buffer, const Step& step);
  void write_strided(int buffer, llvm::ArrayRef<llvm::Value*> parts, const Step& step);
  llvm::Value* collect(llvm::Type* element, llvm::Value* place, llvm::Value* by);
  void spread(llvm::Type* element, llvm::Value* place, llvm::Value* by);
  llvm::Value* stride(int buffer, size_t axis);
  void enter(llvm::ArrayRef<llvm::Value*> index);  // of the outer axes
  std::vector<llvm::Value*> outer_index(llvm::Value* number);
  llvm::Value* stage();  // a 64-byte aligned buffer of one vector of the widest type, in the entry block
  llvm::Function* strided_copy(unsigned bytes, bool collect);

  std::vector<llvm::Value*> pointers_;  // per buffer, at the launch's start
  std::vector<llvm::Value*> bases_;     // per buffer, at the current unit
  std::vector<llvm::Value*> strides_;   // [buffer][axis], null where not of class Any
  llvm::Value* stage_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
};

// The two kinds of kernels. `e` stands in the entry block, which has no terminator; they return from the function.
void emit_elementwise(Emission& e);
void emit_rows(Emission& e);

// One row of the operator table applied to values of one type.
Vec emit_op(Builder& b, ops::OpId op, llvm::ArrayRef<Vec> args);

}  // namespace fxjit::inline v0::codegen
