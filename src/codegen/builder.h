// The vocabulary that the operator table's EMIT texts and the math functions are written in. A value is U interleaved
// vectors: each operation is emitted for all U before the next one, which is what hides latencies without a scheduler.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>

#include "codegen/target_hooks.h"
#include "fxjit/dtype.h"

namespace fxjit::inline v0::codegen {

// One value of a step. Half types have type Float32; Bool is a mask of i1.
struct Vec {
  llvm::SmallVector<llvm::Value*, 4> parts;  // U vectors of the target's lanes, or one if uniform
  DType type = DType::Float32;
  bool uniform = false;  // the same in all lanes and all iterations of the innermost loop

  llvm::Value* part(size_t u) const { return parts[uniform ? 0 : u]; }
  explicit operator bool() const { return !parts.empty(); }
};

// Where varying operations get their constants from. Named vectors cost the selection DAG a tenth of its time (it tries
// their negations, lane by lane), and at O0 it may load one again for each use: so splats are read from memory.
enum class Constants : uint8_t { Named, OncePerBlock, OncePerFunction };

class Builder {
 public:
  // Varying operations go where `ir` stands. Operations on uniform values alone go to `hoist`, which must dominate it.
  Builder(const TargetHooks& hooks, llvm::LLVMContext& context, bool fast_math);

  const TargetHooks& hooks() const { return hooks_; }
  llvm::LLVMContext& context() const { return ir.getContext(); }
  Ir ir;
  Ir hoist;  // before the terminator of its block, or at its end while it has none
  void hoist_into(llvm::BasicBlock* block);

  void set_constants(Constants how) { constants_ = how; }

  int vectors() const { return vectors_; }
  void set_vectors(int u) { vectors_ = u; }

  // The type of the constants c and ci: that of the operands of the row that is being expanded.
  DType type() const { return type_; }
  void set_type(DType t) { type_ = compute_type(t); }

  // ---- types ----
  llvm::Type* scalar_type(DType t);                // in registers: halves are float, Bool is i1
  llvm::Type* lane_type(DType t);                  // <lanes x scalar_type>, or the scalar where lanes is 1
  llvm::Type* storage_type(DType t);               // in memory: half, i16 for bfloat16, i8 for Bool
  llvm::Type* widen(llvm::Type* t);                // <lanes x t> or t
  llvm::Value* splat(Ir& b, llvm::Value* scalar);  // widened
  Vec uniform(llvm::Value* scalar, DType t);       // splat at `hoist`
  Vec constant(double v, DType t);
  Vec constant_int(int64_t v, DType t);

  // ---- the vocabulary of elementwise.def ----
  Vec c(double v) { return constant(v, type_); }
  Vec ci(int64_t v) { return constant_int(v, type_); }
  Vec add(const Vec& x, const Vec& y);
  Vec sub(const Vec& x, const Vec& y);
  Vec mul(const Vec& x, const Vec& y);
  Vec div(const Vec& x, const Vec& y);
  Vec neg(const Vec& x);
  Vec abs(const Vec& x);
  Vec fma(const Vec& x, const Vec& y, const Vec& z);
  Vec sqrt(const Vec& x);
  Vec floor(const Vec& x);
  Vec ceil(const Vec& x);
  Vec trunc(const Vec& x);
  Vec round_even(const Vec& x);
  Vec copysign(const Vec& magnitude, const Vec& sign);
  Vec min(const Vec& x, const Vec& y);
  Vec max(const Vec& x, const Vec& y);
  Vec lt(const Vec& x, const Vec& y);
  Vec le(const Vec& x, const Vec& y);
  Vec gt(const Vec& x, const Vec& y);
  Vec ge(const Vec& x, const Vec& y);
  Vec eq(const Vec& x, const Vec& y);
  Vec ne(const Vec& x, const Vec& y);
  Vec isnan(const Vec& x);
  Vec and_(const Vec& x, const Vec& y);
  Vec or_(const Vec& x, const Vec& y);
  Vec xor_(const Vec& x, const Vec& y);
  Vec not_(const Vec& x);
  Vec shl(const Vec& x, const Vec& y);
  Vec shr(const Vec& x, const Vec& y);
  Vec select(const Vec& mask, const Vec& x, const Vec& y);

#define FXJIT_MATH_1(name) Vec name(const Vec& x);
#define FXJIT_MATH_2(name) Vec name(const Vec& x, const Vec& y);
#define FXJIT_MATH(name, arity, ulp, low, high, exact) FXJIT_MATH_##arity(name)
#include "fxjit/ops/math.def"
#undef FXJIT_MATH_1
#undef FXJIT_MATH_2

  // ---- what the math functions need besides ----
  Vec raw_min(const Vec& x, const Vec& y);  // x < y ? x : y: y where either is NaN
  Vec raw_max(const Vec& x, const Vec& y);  // x > y ? x : y: y where either is NaN
  Vec horner(const Vec& x, std::initializer_list<double> highest_first);
  Vec bits(const Vec& x);                       // float as i32
  Vec from_bits(const Vec& x);                  // i32 as float
  Vec shl_bits(const Vec& x, unsigned amount);  // amount below the width
  // 2^n of a double whose low mantissa bits hold n in two's complement, |n| < 1022.
  Vec power_of_double_image(const Vec& image);
  Vec to_int(const Vec& x);  // float to i32, of a value that fits
  Vec with_sign_of(const Vec& magnitude,
                   const Vec& sign);  // or's the sign bit in; the sign of magnitude is clear or equal
  Vec scale_by_power_of_two(const Vec& x, const Vec& n, const Vec& image);  // see TargetHooks
  Vec bound_remainder(const Vec& r, double limit);
  std::pair<Vec, Vec> split_exponent(const Vec& x);  // see TargetHooks

  // ---- conversion ----
  // `from` and `to` are tensor dtypes: x holds a value of `from`, the result one of `to`, rounded where `to` is half.
  Vec cast(const Vec& x, DType from, DType to);
  Vec round_to(const Vec& x, DType half);
  // One scalar argument of a launch (f64 or i64 bits as `from` says) or an extent, as `to`.
  llvm::Value* scalar_cast(llvm::Value* v, DType from, DType to);

  // Applies `f` to each of the U parts, or once, hoisted, where all operands are uniform.
  using PartFn = llvm::function_ref<llvm::Value*(Ir&, llvm::ArrayRef<llvm::Value*>)>;
  Vec map(DType result, std::initializer_list<const Vec*> operands, PartFn f);

 private:
  Vec compare(llvm::CmpInst::Predicate f, llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u, const Vec& x,
              const Vec& y);
  Vec unary(llvm::Intrinsic::ID id, const Vec& x);
  llvm::Value* operand(llvm::Value* v);

  const TargetHooks& hooks_;
  int vectors_ = 1;
  DType type_ = DType::Float32;
  Constants constants_ = Constants::Named;
  llvm::BasicBlock* loaded_in_ = nullptr;  // where the values of `loaded_` are known
  llvm::DenseMap<llvm::Value*, llvm::Value*> loaded_;
};

}  // namespace fxjit::inline v0::codegen
