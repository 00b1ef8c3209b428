#include "codegen/cpu/cpu_hooks.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <cstddef>

#include "runtime/abi.h"

namespace fxjit::inline v0::codegen {
namespace {

using llvm::Value;

size_t offset_of(LaunchField field) {
  switch (field) {
    case LaunchField::Pointer:
      return offsetof(fxjit_launch, pointers);
    case LaunchField::Extent:
      return offsetof(fxjit_launch, extents);
    case LaunchField::Stride:
      return offsetof(fxjit_launch, strides);
    case LaunchField::Scalar:
      return offsetof(fxjit_launch, scalars);
    case LaunchField::Blocks:
      return offsetof(fxjit_launch, blocks);
  }
  return 0;
}

// What both share. The 16 lanes are one zmm register, or two ymm, which beats 8 lanes on AVX2 too.
struct CpuHooks : TargetHooks {
  TargetDescription description() const override {
    return {"x86_64-unknown-linux-gnu", "", "",
            "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"};
  }
  int lanes() const override { return 16; }

  llvm::Function* declare_kernel(llvm::Module& m, const std::string& symbol) const override {
    llvm::LLVMContext& c = m.getContext();
    llvm::Type* i64 = llvm::Type::getInt64Ty(c);
    llvm::Type* parameters[] = {i64, i64, llvm::PointerType::getUnqual(c)};
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(c), parameters, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, m);
    f->setDoesNotThrow();
    f->getArg(0)->setName("begin");
    f->getArg(1)->setName("end");
    f->getArg(2)->setName("launch");
    return f;
  }

  Iteration iteration(Ir& b, llvm::Function& f) const override {
    return {f.getArg(0), f.getArg(1), b.getInt64(1), b.getInt64(0), b.getInt64(1)};
  }

  Value* launch_field(Ir& b, llvm::Function& f, LaunchField field, int index) const override {
    Value* place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), f.getArg(2), offset_of(field));
    if (field == LaunchField::Blocks) return b.CreateLoad(b.getInt64Ty(), place, "blocks");
    llvm::Type* element = field == LaunchField::Pointer ? static_cast<llvm::Type*>(b.getPtrTy()) : b.getInt64Ty();
    Value* array = b.CreateLoad(b.getPtrTy(), place);
    return b.CreateLoad(element, b.CreateConstInBoundsGEP1_64(element, array, index));
  }

  void report_no_memory(Ir& b, llvm::Function& f) const override {
    Value* place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), f.getArg(2), offsetof(fxjit_launch, status));
    llvm::StoreInst* store = b.CreateAlignedStore(b.getInt32(FXJIT_NO_MEMORY), place, llvm::Align(4));
    store->setAtomic(llvm::AtomicOrdering::Monotonic);  // other threads may have none either
  }

  // Such stores are ordered by nothing else than this, or a locked instruction.
  void fence_nontemporal(Ir& b) const override { b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }
};

struct Avx512Hooks final : CpuHooks {
  static bool is_full_float(Value* x) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
    return vector && vector->getNumElements() == 16 && vector->getElementType()->isFloatTy();
  }

  int registers() const override { return 32; }
  bool has_mask_registers() const override { return true; }
  bool has_masked_access(unsigned) const override { return true; }

  Value* scale_by_power_of_two(Ir& b, Value* x, Value* n, Value*) const override {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                             {x, n, llvm::PoisonValue::get(x->getType()), b.getInt16(-1), b.getInt32(4)});
  }

  bool scales_by_any_power() const override { return true; }

  // vrange, the smaller magnitude with the sign of r: one instruction for the two of a clamp.
  Value* bound_remainder(Ir& b, Value* r, double limit) const override {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
                             {r, llvm::ConstantFP::get(r->getType(), limit), b.getInt32(2),
                              llvm::PoisonValue::get(r->getType()), b.getInt16(-1), b.getInt32(4)});
  }

  // The instruction by name: finding it in a comparison and a selection is 3 % of compiling a softmax.
  Value* raw_max(Ir& b, Value* x, Value* y) const override {
    if (!is_full_float(x)) return CpuHooks::raw_max(b, x, y);
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_max_ps_512, {}, {x, y, b.getInt32(4)});
  }
  Value* raw_min(Ir& b, Value* x, Value* y) const override {
    if (!is_full_float(x)) return CpuHooks::raw_min(b, x, y);
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_min_ps_512, {}, {x, y, b.getInt32(4)});
  }

  // Interval 3: [0.75, 1.5). Sign control 3: NaN below zero, 1 for both zeros. vgetexp counts from [1, 2), hence the
  // difference; it gives -inf for 0 and inf for inf.
  std::pair<Value*, Value*> split_exponent(Ir& b, Value* x) const override {
    Value* any = llvm::PoisonValue::get(x->getType());
    auto getexp = [&](Value* v) {
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_getexp_ps_512, {},
                               {v, any, b.getInt16(-1), b.getInt32(4)});
    };
    Value* m = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_getmant_ps_512, {},
                                 {x, b.getInt32(3 | 3 << 2), any, b.getInt16(-1), b.getInt32(4)});
    return {m, b.CreateFSub(getexp(x), getexp(m))};
  }

  // cvttps2dq gives INT_MIN for what does not fit.
  Value* float_to_int(Ir& b, Value* x, DType to) const override {
    const bool narrow = to == DType::Int32 || to == DType::Int16 || to == DType::Int8;
    if (!narrow || !is_full_float(x)) return CpuHooks::float_to_int(b, x, to);
    auto* wide = llvm::FixedVectorType::get(b.getInt32Ty(), 16);
    Value* result = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_cvttps2dq_512, {},
                                      {x, llvm::PoisonValue::get(wide), b.getInt16(-1), b.getInt32(4)});
    const unsigned bits = 8 * size_of(to);
    return bits < 32 ? b.CreateTrunc(result, llvm::FixedVectorType::get(b.getIntNTy(bits), 16)) : result;
  }
};

// Masked moves of 8- and 16-bit elements do not exist: LLVM makes 100 scalar instructions of one.
struct Avx2Hooks final : CpuHooks {
  int registers() const override { return 8; }
  bool has_masked_access(unsigned bits) const override { return bits >= 32; }
};

const Avx512Hooks kAvx512;
const Avx2Hooks kAvx2;

}  // namespace

const TargetHooks& avx512_hooks() { return kAvx512; }
const TargetHooks& avx2_hooks() { return kAvx2; }

const TargetHooks* find_cpu_hooks(std::string_view name) {
  if (name == "avx512") return &kAvx512;
  if (name == "avx2") return &kAvx2;
  return nullptr;
}

}  // namespace fxjit::inline v0::codegen
