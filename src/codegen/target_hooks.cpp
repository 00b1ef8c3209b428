// The portable definitions. They hold for scalars and vectors alike: types follow the operand's.
#include "codegen/target_hooks.h"

#include <llvm/IR/Intrinsics.h>

#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

using llvm::Value;

llvm::Type* like(Value* x, llvm::Type* scalar) {
  if (auto* v = llvm::dyn_cast<llvm::VectorType>(x->getType()))
    return llvm::VectorType::get(scalar, v->getElementCount());
  return scalar;
}

llvm::Constant* constant(Value* x, double v) { return llvm::ConstantFP::get(x->getType(), v); }
llvm::Constant* constant_int(llvm::Type* t, int64_t v) { return llvm::ConstantInt::get(t, v, true); }

}  // namespace

// In two steps, so that only the second rounds: a normal number times 2^(n / 2) is normal. Multiplications both: adding
// to the exponent of x itself would turn a NaN, whose image holds anything, into a number.
Value* TargetHooks::scale_by_power_of_two(Ir& b, Value* x, Value*, Value* image) const {
  llvm::Type* int_type = like(x, b.getInt32Ty());
  llvm::Constant* one = constant_int(int_type, 127 << 23);
  Value* n = b.CreateShl(b.CreateBitCast(image, int_type), 23);  // in the place of the exponent
  Value* half = b.CreateAnd(b.CreateAShr(n, 1), constant_int(int_type, int32_t(0xff800000)));
  Value* scaled = b.CreateFMul(x, b.CreateBitCast(b.CreateAdd(half, one), x->getType()));
  return b.CreateFMul(scaled, b.CreateBitCast(b.CreateAdd(b.CreateSub(n, half), one), x->getType()));
}

Value* TargetHooks::bound_remainder(Ir&, Value*, double) const {
  FXJIT_UNREACHABLE("asked of targets that scale by any power");
}

std::pair<Value*, Value*> TargetHooks::split_exponent(Ir& b, Value* x) const {
  llvm::Type* int_type = like(x, b.getInt32Ty());
  // Denormals are scaled by 2^23 into the normal range.
  Value* tiny = b.CreateFCmpOLT(x, constant(x, 0x1p-126));
  Value* normal = b.CreateSelect(tiny, b.CreateFMul(x, constant(x, 0x1p23)), x);
  Value* bits = b.CreateBitCast(normal, int_type);
  // Bits above 0.75's exponent and leading fraction bit: m's bits minus those of e leave [0.75, 1.5).
  Value* e = b.CreateAnd(b.CreateSub(bits, constant_int(int_type, 0x3f400000)), constant_int(int_type, 0xff800000));
  Value* m = b.CreateBitCast(b.CreateSub(bits, e), x->getType());
  Value* exponent = b.CreateSIToFP(b.CreateAShr(e, 23), x->getType());
  exponent = b.CreateFSub(exponent, b.CreateSelect(tiny, constant(x, 23), constant(x, 0)));
  // Specials: not (x > 0) is zero, negative or NaN; x == inf.
  llvm::Constant* infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* is_zero = b.CreateFCmpOEQ(x, constant(x, 0));
  Value* is_infinite = b.CreateFCmpOEQ(x, infinity);
  Value* positive = b.CreateFCmpOGT(x, constant(x, 0));
  Value* one = constant(x, 1);
  m = b.CreateSelect(positive, m, llvm::ConstantFP::getNaN(x->getType()));
  m = b.CreateSelect(b.CreateOr(is_zero, is_infinite), one, m);
  exponent = b.CreateSelect(is_infinite, infinity, exponent);
  exponent = b.CreateSelect(is_zero, llvm::ConstantFP::getInfinity(x->getType(), true), exponent);
  return {m, exponent};
}

// bfloat16 in integer arithmetic: vcvtneps2bf16 flushes denormals, and without it LLVM calls a function per lane.
Value* TargetHooks::half_from_storage(Ir& b, Value* bits, DType half) const {
  llvm::Type* float_type = like(bits, b.getFloatTy());
  if (half == DType::Float16) return b.CreateFPExt(bits, float_type);
  return b.CreateBitCast(b.CreateShl(b.CreateZExt(bits, like(bits, b.getInt32Ty())), 16), float_type);
}

Value* TargetHooks::half_to_storage(Ir& b, Value* x, DType half) const {
  if (half == DType::Float16) return b.CreateFPTrunc(x, like(x, b.getHalfTy()));
  Value* bits = b.CreateBitCast(x, like(x, b.getInt32Ty()));
  return b.CreateTrunc(b.CreateLShr(bits, 16), like(x, b.getInt16Ty()));
}

Value* TargetHooks::round_to_half(Ir& b, Value* x, DType half) const {
  if (half == DType::Float16) return b.CreateFPExt(b.CreateFPTrunc(x, like(x, b.getHalfTy())), x->getType());
  llvm::Type* int_type = like(x, b.getInt32Ty());
  Value* bits = b.CreateBitCast(x, int_type);
  Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), constant_int(int_type, 1));
  Value* sum = b.CreateAdd(bits, b.CreateAdd(odd, constant_int(int_type, 0x7fff)));
  sum = b.CreateSelect(b.CreateFCmpUNO(x, x), constant_int(int_type, 0x7fc00000), sum);
  return b.CreateBitCast(b.CreateAnd(sum, constant_int(int_type, int32_t(0xffff0000))), x->getType());
}

// Eager's compilers convert to the narrow types through int32, ATen itself to uint8 through int64
// (c10/util/TypeCast.h).
Value* TargetHooks::float_to_int(Ir& b, Value* x, DType to) const {
  const bool through_64 = to == DType::Int64 || to == DType::UInt8;
  llvm::Type* wide = like(x, through_64 ? b.getInt64Ty() : b.getInt32Ty());
  const double limit = through_64 ? 0x1p63 : 0x1p31;
  // A double between -2^31 - 1 and -2^31 truncates to -2^31, which is also what does not fit gives.
  Value* fits = b.CreateAnd(b.CreateFCmpOGE(x, constant(x, -limit)), b.CreateFCmpOLT(x, constant(x, limit)));
  Value* safe = b.CreateFPToSI(b.CreateSelect(fits, x, constant(x, 0)), wide);
  llvm::Constant* smallest = constant_int(wide, through_64 ? INT64_MIN : INT32_MIN);
  Value* result = b.CreateSelect(fits, safe, smallest);
  const unsigned bits = 8 * size_of(to);
  return bits < wide->getScalarSizeInBits() ? b.CreateTrunc(result, like(x, b.getIntNTy(bits))) : result;
}

Value* TargetHooks::raw_max(Ir& b, Value* x, Value* y) const { return b.CreateSelect(b.CreateFCmpOGT(x, y), x, y); }

Value* TargetHooks::raw_min(Ir& b, Value* x, Value* y) const { return b.CreateSelect(b.CreateFCmpOLT(x, y), x, y); }

Value* TargetHooks::fmax(Ir& b, Value* x, Value* y) const {
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, raw_max(b, x, y));
}

Value* TargetHooks::fmin(Ir& b, Value* x, Value* y) const {
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, raw_min(b, x, y));
}

}  // namespace fxjit::inline v0::codegen
