#include "codegen/builder.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include "support/errors.h"

namespace fxjit::inline v0::codegen {

using llvm::ArrayRef;
using llvm::CmpInst;
using llvm::Value;

Builder::Builder(const TargetHooks& hooks, llvm::LLVMContext& context, bool fast_math)
    : ir(context), hoist(context), hooks_(hooks) {
  if (fast_math) {
    llvm::FastMathFlags flags;
    flags.setAllowContract();
    flags.setAllowReassoc();
    flags.setAllowReciprocal();
    ir.setFastMathFlags(flags);
    hoist.setFastMathFlags(flags);
  }
}

void Builder::hoist_into(llvm::BasicBlock* block) {
  if (llvm::Instruction* end = block->getTerminator()) {
    hoist.SetInsertPoint(end);
  } else {
    hoist.SetInsertPoint(block);
  }
}

Vec Builder::map(DType result, std::initializer_list<const Vec*> operands, PartFn f) {
  Vec out;
  out.type = result;
  out.uniform = true;
  for (const Vec* x : operands) out.uniform &= x->uniform;
  llvm::SmallVector<Value*, 3> parts(operands.size());
  const int count = out.uniform ? 1 : vectors_;
  if (out.uniform) hoist_into(hoist.GetInsertBlock());
  for (int u = 0; u < count; ++u) {
    size_t i = 0;
    for (const Vec* x : operands) parts[i++] = out.uniform ? x->part(u) : operand(x->part(u));
    out.parts.push_back(f(out.uniform ? hoist : ir, parts));
  }
  return out;
}

namespace {

// One constant of the module, under a name that shows its value: "c.1.5", "c.i32.8388608".
llvm::GlobalVariable* in_memory(llvm::Module& module, llvm::Constant* element) {
  std::string name = "c.";
  llvm::raw_string_ostream stream(name);
  if (auto* f = llvm::dyn_cast<llvm::ConstantFP>(element)) {
    if (element->getType()->isDoubleTy()) stream << "f64.";
    llvm::SmallString<24> digits;
    f->getValueAPF().toString(digits);
    stream << digits;
  } else {
    element->getType()->print(stream);
    stream << '.' << llvm::cast<llvm::ConstantInt>(element)->getSExtValue();
  }
  if (llvm::GlobalVariable* known = module.getNamedGlobal(stream.str())) return known;
  auto* global = new llvm::GlobalVariable(module, element->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, element, stream.str());
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return global;
}

}  // namespace

// A splat of anything but all zeros or ones, which need no memory.
Value* Builder::operand(Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constants_ == Constants::Named || !constant || !v->getType()->isVectorTy()) return v;
  llvm::Constant* element = constant->getSplatValue();
  if (!element || element->isNullValue() || element->isAllOnesValue() || element->getType()->isIntegerTy(1)) return v;
  llvm::Function& function = *ir.GetInsertBlock()->getParent();
  if (constants_ == Constants::OncePerBlock && loaded_in_ != ir.GetInsertBlock()) {
    loaded_.clear();
    loaded_in_ = ir.GetInsertBlock();
  }
  Value*& known = loaded_[v];
  if (known) return known;
  Ir entry(context());
  if (constants_ == Constants::OncePerFunction) entry.SetInsertPoint(function.getEntryBlock().getTerminator());
  Ir& at = constants_ == Constants::OncePerFunction ? entry : ir;
  return known = splat(at, at.CreateLoad(element->getType(), in_memory(*function.getParent(), element)));
}

// ---- types and constants ----

llvm::Type* Builder::scalar_type(DType t) {
  switch (t) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return ir.getFloatTy();
    case DType::Float64:
      return ir.getDoubleTy();
    case DType::Bool:
      return ir.getInt1Ty();
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      return ir.getIntNTy(8 * size_of(t));
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  throw InternalError(std::string("no register type for ") + to_text(t));
}

llvm::Type* Builder::storage_type(DType t) {
  if (t == DType::Float16) return ir.getHalfTy();
  if (t == DType::BFloat16) return ir.getInt16Ty();
  if (t == DType::Bool) return ir.getInt8Ty();
  return scalar_type(t);
}

llvm::Type* Builder::widen(llvm::Type* t) {
  return hooks_.lanes() == 1 ? t : llvm::FixedVectorType::get(t, hooks_.lanes());
}

llvm::Type* Builder::lane_type(DType t) { return widen(scalar_type(t)); }

Value* Builder::splat(Ir& b, Value* scalar) {
  return hooks_.lanes() == 1 ? scalar : b.CreateVectorSplat(hooks_.lanes(), scalar);
}

Vec Builder::uniform(Value* scalar, DType t) {
  hoist_into(hoist.GetInsertBlock());
  return {{splat(hoist, scalar)}, t, true};
}

Vec Builder::constant(double v, DType t) {
  if (!is_floating(t)) return constant_int(static_cast<int64_t>(v), t);
  const DType held = compute_type(t);
  return {{llvm::ConstantFP::get(lane_type(held), held == DType::Float32 ? static_cast<float>(v) : v)}, held, true};
}

Vec Builder::constant_int(int64_t v, DType t) {
  if (is_floating(t)) return constant(static_cast<double>(v), t);
  if (t == DType::Bool) v = v != 0;
  return {{llvm::ConstantInt::get(lane_type(t), v, /*IsSigned=*/true)}, t, true};
}

// ---- arithmetic ----

namespace {

bool floating(const Vec& x) { return is_floating(x.type); }
bool is_unsigned(const Vec& x) { return x.type == DType::UInt8 || x.type == DType::Bool; }

Value* intrinsic(Ir& b, llvm::Intrinsic::ID id, ArrayRef<Value*> v) {
  return b.CreateIntrinsic(id, {v[0]->getType()}, v);
}

}  // namespace

Vec Builder::add(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) {
    return floating(x) ? b.CreateFAdd(v[0], v[1]) : b.CreateAdd(v[0], v[1]);
  });
}

Vec Builder::sub(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) {
    return floating(x) ? b.CreateFSub(v[0], v[1]) : b.CreateSub(v[0], v[1]);
  });
}

Vec Builder::mul(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) {
    return floating(x) ? b.CreateFMul(v[0], v[1]) : b.CreateMul(v[0], v[1]);
  });
}

Vec Builder::div(const Vec& x, const Vec& y) {
  FXJIT_CHECK(floating(x), "div is for floating types");
  return map(x.type, {&x, &y}, [](Ir& b, ArrayRef<Value*> v) { return b.CreateFDiv(v[0], v[1]); });
}

Vec Builder::neg(const Vec& x) {
  return map(x.type, {&x},
             [&](Ir& b, ArrayRef<Value*> v) { return floating(x) ? b.CreateFNeg(v[0]) : b.CreateNeg(v[0]); });
}

Vec Builder::abs(const Vec& x) {
  if (is_unsigned(x)) return x;
  return map(x.type, {&x}, [&](Ir& b, ArrayRef<Value*> v) -> Value* {
    if (floating(x)) return intrinsic(b, llvm::Intrinsic::fabs, v);
    return b.CreateIntrinsic(llvm::Intrinsic::abs, {v[0]->getType()}, {v[0], b.getFalse()});  // wraps
  });
}

Vec Builder::fma(const Vec& x, const Vec& y, const Vec& z) {
  if (!floating(x)) return add(mul(x, y), z);
  // x second: below -O1 the second operand's register is the one that x86 overwrites, and x is what a Horner scheme
  // carries on. The other way round exp is 8 % slower, for the copies.
  return map(x.type, {&y, &x, &z}, [](Ir& b, ArrayRef<Value*> v) { return intrinsic(b, llvm::Intrinsic::fma, v); });
}

Vec Builder::unary(llvm::Intrinsic::ID id, const Vec& x) {
  FXJIT_CHECK(floating(x), "this function is for floating types");
  return map(x.type, {&x}, [&](Ir& b, ArrayRef<Value*> v) { return intrinsic(b, id, v); });
}

Vec Builder::sqrt(const Vec& x) { return unary(llvm::Intrinsic::sqrt, x); }
Vec Builder::floor(const Vec& x) { return unary(llvm::Intrinsic::floor, x); }
Vec Builder::ceil(const Vec& x) { return unary(llvm::Intrinsic::ceil, x); }
Vec Builder::trunc(const Vec& x) { return unary(llvm::Intrinsic::trunc, x); }
// nearbyint, not roundeven: below -O1 the latter is a libcall on x86 without a legal node for every width.
Vec Builder::round_even(const Vec& x) { return unary(llvm::Intrinsic::nearbyint, x); }

Vec Builder::copysign(const Vec& magnitude, const Vec& sign) {
  return map(magnitude.type, {&magnitude, &sign},
             [](Ir& b, ArrayRef<Value*> v) { return intrinsic(b, llvm::Intrinsic::copysign, v); });
}

namespace {

// A constant first operand that is no NaN costs no test for it.
bool is_number(const Vec& x) {
  if (!x.uniform || !is_floating(x.type)) return false;
  auto* constant = llvm::dyn_cast<llvm::Constant>(x.parts[0]);
  if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* value = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return value && !value->isNaN();
}

}  // namespace

Vec Builder::min(const Vec& x, const Vec& y) {
  if (is_number(x)) return raw_min(x, y);
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) {
    if (floating(x)) return hooks_.fmin(b, v[0], v[1]);
    return intrinsic(b, is_unsigned(x) ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, v);
  });
}

Vec Builder::max(const Vec& x, const Vec& y) {
  if (is_number(x)) return raw_max(x, y);
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) {
    if (floating(x)) return hooks_.fmax(b, v[0], v[1]);
    return intrinsic(b, is_unsigned(x) ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, v);
  });
}

// ---- comparison, logic ----

Vec Builder::compare(CmpInst::Predicate f, CmpInst::Predicate s, CmpInst::Predicate u, const Vec& x, const Vec& y) {
  const CmpInst::Predicate p = floating(x) ? f : is_unsigned(x) ? u : s;
  return map(DType::Bool, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) { return b.CreateCmp(p, v[0], v[1]); });
}

Vec Builder::lt(const Vec& x, const Vec& y) {
  return compare(CmpInst::FCMP_OLT, CmpInst::ICMP_SLT, CmpInst::ICMP_ULT, x, y);
}
Vec Builder::le(const Vec& x, const Vec& y) {
  return compare(CmpInst::FCMP_OLE, CmpInst::ICMP_SLE, CmpInst::ICMP_ULE, x, y);
}
Vec Builder::gt(const Vec& x, const Vec& y) {
  return compare(CmpInst::FCMP_OGT, CmpInst::ICMP_SGT, CmpInst::ICMP_UGT, x, y);
}
Vec Builder::ge(const Vec& x, const Vec& y) {
  return compare(CmpInst::FCMP_OGE, CmpInst::ICMP_SGE, CmpInst::ICMP_UGE, x, y);
}
Vec Builder::eq(const Vec& x, const Vec& y) {
  return compare(CmpInst::FCMP_OEQ, CmpInst::ICMP_EQ, CmpInst::ICMP_EQ, x, y);
}
Vec Builder::ne(const Vec& x, const Vec& y) {
  return compare(CmpInst::FCMP_UNE, CmpInst::ICMP_NE, CmpInst::ICMP_NE, x, y);
}

Vec Builder::isnan(const Vec& x) {
  return map(DType::Bool, {&x}, [](Ir& b, ArrayRef<Value*> v) { return b.CreateFCmpUNO(v[0], v[0]); });
}

Vec Builder::and_(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [](Ir& b, ArrayRef<Value*> v) { return b.CreateAnd(v[0], v[1]); });
}

Vec Builder::or_(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [](Ir& b, ArrayRef<Value*> v) { return b.CreateOr(v[0], v[1]); });
}

Vec Builder::xor_(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [](Ir& b, ArrayRef<Value*> v) { return b.CreateXor(v[0], v[1]); });
}

Vec Builder::not_(const Vec& x) {
  return map(x.type, {&x}, [](Ir& b, ArrayRef<Value*> v) { return b.CreateNot(v[0]); });
}

// A shift by the width or more is poison in LLVM IR; eager defines it.
Vec Builder::shl(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [](Ir& b, ArrayRef<Value*> v) -> Value* {
    llvm::Type* t = v[0]->getType();
    Value* fits = b.CreateICmpULT(v[1], llvm::ConstantInt::get(t, t->getScalarSizeInBits()));
    Value* amount = b.CreateSelect(fits, v[1], llvm::Constant::getNullValue(t));
    return b.CreateSelect(fits, b.CreateShl(v[0], amount), llvm::Constant::getNullValue(t));
  });
}

Vec Builder::shr(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) -> Value* {
    llvm::Type* t = v[0]->getType();
    const unsigned width = t->getScalarSizeInBits();
    Value* fits = b.CreateICmpULT(v[1], llvm::ConstantInt::get(t, width));
    Value* amount = b.CreateSelect(fits, v[1], llvm::ConstantInt::get(t, width - 1));
    if (!is_unsigned(x)) return b.CreateAShr(v[0], amount);
    return b.CreateSelect(fits, b.CreateLShr(v[0], amount), llvm::Constant::getNullValue(t));
  });
}

Vec Builder::select(const Vec& mask, const Vec& x, const Vec& y) {
  return map(x.type, {&mask, &x, &y}, [](Ir& b, ArrayRef<Value*> v) { return b.CreateSelect(v[0], v[1], v[2]); });
}

}  // namespace fxjit::inline v0::codegen
