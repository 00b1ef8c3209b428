#include "codegen/reduction.h"

#include <llvm/ADT/STLExtras.h>

#include <vector>

#include "support/errors.h"

namespace fxjit::inline v0::codegen {

using kernel::ReduceOp;
using llvm::Value;

// Of two sums in one pass the second goes by fma(x, 1, sum), the same value: AMD has an adder and a multiplier a cycle,
// and the adder is what a layer norm's pass waits for (128 x 768 from the second-level cache: 17 us, this way 15).
Reduction::Reduction(Emission& e, int expr, int vectors, size_t place)
    : e_(e),
      expr_(expr),
      op_(e.k.exprs[expr].reduce),
      type_(e.k.exprs[expr].dtype),
      vectors_(vectors),
      by_fma_(is_cascaded() && place % 2 == 1) {}

bool Reduction::is_cascaded() const { return op_ == ReduceOp::Sum && is_floating(type_); }
bool Reduction::is_logical() const { return op_ == ReduceOp::Any || op_ == ReduceOp::All; }
// max and min of floats are single instructions that lose NaN, so NaNs are looked for beside them, two vectors a test.
bool Reduction::has_nan_flag() const { return is_floating(type_) && (op_ == ReduceOp::Max || op_ == ReduceOp::Min); }

llvm::Type* Reduction::flag_type() const {
  Builder& b = e_.b;
  return b.widen(b.ir.getIntNTy(e_.hooks.has_mask_registers() ? 1 : 8 * size_of(type_)));
}

Value* Reduction::identity() const {
  Builder& b = e_.b;
  // Logical accumulators are bytes: a carried mask would be unpacked and packed where there are no mask registers.
  if (is_logical()) return llvm::ConstantInt::get(b.widen(b.ir.getInt8Ty()), op_ == ReduceOp::All ? -1 : 0, true);
  llvm::Type* t = b.lane_type(type_);
  const unsigned bits = t->getScalarSizeInBits();
  const bool is_unsigned = kind_of(type_) == 'u';
  switch (op_) {
    case ReduceOp::Sum:
      return llvm::Constant::getNullValue(t);
    case ReduceOp::Prod:
      return is_floating(type_) ? llvm::ConstantFP::get(t, 1.0) : llvm::ConstantInt::get(t, 1);
    case ReduceOp::Max:
      if (is_floating(type_)) return llvm::ConstantFP::getInfinity(t, true);
      return llvm::ConstantInt::get(
          t, is_unsigned ? llvm::APInt::getMinValue(bits) : llvm::APInt::getSignedMinValue(bits));
    case ReduceOp::Min:
      if (is_floating(type_)) return llvm::ConstantFP::getInfinity(t, false);
      return llvm::ConstantInt::get(
          t, is_unsigned ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits));
    case ReduceOp::Any:
    case ReduceOp::All:
      break;
  }
  FXJIT_UNREACHABLE("identity of a reduction");
}

void Reduction::start(llvm::SmallVectorImpl<Value*>& carried) const {
  carried.append(vectors_, identity());
  if (has_nan_flag()) carried.push_back(llvm::Constant::getNullValue(flag_type()));
}

// Works for vectors of any length.
Value* Reduction::combine(Value* x, Value* y) const {
  Ir& b = e_.b.ir;
  const bool floating = is_floating(type_), is_unsigned = kind_of(type_) == 'u';
  switch (op_) {
    case ReduceOp::Sum:
      return floating ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case ReduceOp::Prod:
      return floating ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    case ReduceOp::Max:
      if (floating) return e_.hooks.raw_max(b, x, y);
      return b.CreateBinaryIntrinsic(is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, x, y);
    case ReduceOp::Min:
      if (floating) return e_.hooks.raw_min(b, x, y);
      return b.CreateBinaryIntrinsic(is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, x, y);
    case ReduceOp::Any:
      return b.CreateOr(x, y);
    case ReduceOp::All:
      return b.CreateAnd(x, y);
  }
  FXJIT_UNREACHABLE("combination of a reduction");
}

void Reduction::accumulate(llvm::MutableArrayRef<Value*> carried, const Vec& v, const Step& step) const {
  Ir& b = e_.b.ir;
  const int count = e_.b.vectors();
  if (by_fma_) return add_by_fma(carried, v, step);
  for (int u = 0; u < count; ++u) {
    Value* x = v.part(u);
    if (is_logical()) x = b.CreateSExt(x, e_.b.widen(b.getInt8Ty()));
    if (step.mask) x = b.CreateSelect(step.mask, x, identity());
    carried[u] = combine(x, carried[u]);
    if (!has_nan_flag() || (u % 2 == 0 && u + 1 < count)) continue;
    Value* other = u % 2 == 1 ? v.part(u - 1) : x;
    Value* flag = b.CreateFCmpUNO(x, other);
    if (!e_.hooks.has_mask_registers()) flag = b.CreateSExt(flag, flag_type());
    carried.back() = b.CreateOr(carried.back(), flag);
  }
}

void Reduction::add_by_fma(llvm::MutableArrayRef<Value*> carried, const Vec& v, const Step& step) const {
  Vec x, sum;
  x.type = sum.type = type_;
  for (int u = 0; u < e_.b.vectors(); ++u) {
    x.parts.push_back(step.mask ? e_.b.ir.CreateSelect(step.mask, v.part(u), identity()) : v.part(u));
    sum.parts.push_back(carried[u]);
  }
  llvm::copy(e_.b.fma(x, e_.b.constant(1, type_), sum).parts, carried.begin());
}

Value* Reduction::fold_vectors(llvm::ArrayRef<Value*> carried) const {
  std::vector<Value*> v(carried.begin(), carried.begin() + vectors_);
  for (size_t width = vectors_; width > 1; width = (width + 1) / 2) {
    const size_t half = (width + 1) / 2;
    for (size_t i = 0; i + half < width; ++i) v[i] = combine(v[i], v[i + half]);
  }
  return v[0];
}

Value* Reduction::fold_lanes(Value* vector, Value* nan_flag) const {
  Ir& b = e_.b.ir;
  const int lanes = e_.hooks.lanes();
  for (int width = lanes; width > 1; width /= 2) {
    llvm::SmallVector<int, 16> low, high;
    for (int i = 0; i < width / 2; ++i) low.push_back(i), high.push_back(i + width / 2);
    vector = combine(b.CreateShuffleVector(vector, low), b.CreateShuffleVector(vector, high));
  }
  Value* result = lanes > 1 ? b.CreateExtractElement(vector, uint64_t{0}) : vector;
  if (is_logical()) result = b.CreateICmpNE(result, b.getInt8(0));
  if (!nan_flag) return result;
  Value* flags = nan_flag;
  if (!e_.hooks.has_mask_registers()) flags = b.CreateICmpNE(flags, llvm::Constant::getNullValue(flags->getType()));
  if (lanes > 1) flags = b.CreateBitCast(flags, b.getIntNTy(lanes));
  Value* any = b.CreateICmpNE(flags, llvm::Constant::getNullValue(flags->getType()));
  return b.CreateSelect(any, llvm::ConstantFP::getNaN(result->getType()), result);
}

}  // namespace fxjit::inline v0::codegen
