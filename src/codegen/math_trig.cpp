// sin and cos: x = k pi/2 + r in three steps, exact in the first for |x| <= 30000 (k has 15 bits), then a polynomial by
// quadrant. Larger arguments are rare: lanes that have one are reduced again, one by one, by Payne and Hanek's method.
#include <llvm/IR/Module.h>

#include "codegen/math.h"

namespace fxjit::inline v0::codegen {
namespace {

using llvm::Value;

constexpr double kLargest = 30000;

// 2/pi * 2^(32 n - 2) by words, after one of zeros: for the largest exponent four of them are read from the fifth on.
constexpr uint32_t kTwoOverPi[] = {0,          0x28be60db, 0x9391054a, 0x7f09d5f4,
                                   0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea};

// One finite |x| > 1: x = q pi/2 + r. The mantissa times those 96 bits of 2/pi that matter, as 2.62 bits fixed point:
// quadrant and fraction, the multiples of 4 above lost, what is below 2^-62 left out.
std::pair<Value*, Value*> reduce_one(Ir& b, llvm::GlobalVariable* table, Value* x) {
  Value* bits = b.CreateBitCast(x, b.getInt32Ty());
  Value* exponent = b.CreateSub(b.CreateAnd(b.CreateLShr(bits, 23), 255), b.getInt32(126));
  Value* mantissa = b.CreateZExt(b.CreateOr(b.CreateShl(bits, 8), b.getInt32(0x80000000u)), b.getInt64Ty());
  Value* word = b.CreateZExt(b.CreateLShr(exponent, 5), b.getInt64Ty());
  Value* shift = b.CreateZExt(b.CreateAnd(exponent, 31), b.getInt64Ty());
  auto two_words = [&](int from) -> Value* {
    Value* v[2];
    for (int i = 0; i < 2; ++i) {
      Value* place = b.CreateInBoundsGEP(b.getInt32Ty(), table, b.CreateAdd(word, b.getInt64(from + i)));
      v[i] = b.CreateZExt(b.CreateLoad(b.getInt32Ty(), place), b.getInt64Ty());
    }
    return b.CreateOr(b.CreateShl(v[0], 32), v[1]);
  };
  Value *high = two_words(0), *low = two_words(2);
  Value* top = b.CreateOr(b.CreateShl(high, shift), b.CreateLShr(low, b.CreateSub(b.getInt64(64), shift)));
  top = b.CreateSelect(b.CreateICmpEQ(shift, b.getInt64(0)), high, top);
  Value* rest = b.CreateLShr(b.CreateShl(low, shift), 32);
  Value* product = b.CreateAdd(b.CreateMul(mantissa, top), b.CreateLShr(b.CreateMul(mantissa, rest), 32));
  // To nearest: the quadrant counts from the middle of the one below, and the fraction is what is left, signed.
  Value* quadrant = b.CreateLShr(b.CreateAdd(product, b.getInt64(uint64_t{1} << 61)), 62);
  Value* fraction = b.CreateSub(product, b.CreateShl(quadrant, 62));
  Value* scaled = b.CreateFMul(b.CreateSIToFP(fraction, b.getDoubleTy()),
                               llvm::ConstantFP::get(b.getDoubleTy(), 0x1.921fb54442d18p-62));
  Value* r = b.CreateFPTrunc(scaled, b.getFloatTy());
  Value* q = b.CreateTrunc(quadrant, b.getInt32Ty());
  Value* negative = b.CreateICmpSLT(bits, b.getInt32(0));
  return {b.CreateSelect(negative, b.CreateFNeg(r), r), b.CreateSelect(negative, b.CreateNeg(q), q)};
}

// void reduce_large(ptr x, ptr r, ptr q): replaces r and q of the lanes whose x is finite and beyond the fast range.
// Named after the kernel that calls it: texts of several kernels may end up in one PTX module.
llvm::Function* reduce_large(llvm::Function& kernel, int lanes) {
  llvm::Module& m = *kernel.getParent();
  const std::string name = kernel.getName().str() + "_reduce_large";
  if (llvm::Function* f = m.getFunction(name)) return f;
  llvm::LLVMContext& context = m.getContext();
  Ir b(context);
  auto* words = llvm::ConstantDataArray::get(context, kTwoOverPi);
  auto* table = new llvm::GlobalVariable(m, words->getType(), true, llvm::GlobalValue::PrivateLinkage, words,
                                         kernel.getName() + "_two_over_pi");
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, m);
  f->setDoesNotThrow();
  f->addFnAttr(llvm::Attribute::NoInline);
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, f); };
  llvm::BasicBlock *entry = block("entry"), *lane = block("lane"), *large = block("large"), *next = block("next"),
                   *done = block("done");
  b.SetInsertPoint(entry);
  b.CreateBr(lane);
  b.SetInsertPoint(lane);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2, "i");
  i->addIncoming(b.getInt64(0), entry);
  Value* x = b.CreateLoad(b.getFloatTy(), b.CreateInBoundsGEP(b.getFloatTy(), f->getArg(0), i));
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* beyond = b.CreateFCmpOGT(magnitude, llvm::ConstantFP::get(x->getType(), kLargest));
  Value* finite = b.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(x->getType()));
  b.CreateCondBr(b.CreateAnd(beyond, finite), large, next);
  b.SetInsertPoint(large);
  auto [r, q] = reduce_one(b, table, x);
  b.CreateStore(r, b.CreateInBoundsGEP(b.getFloatTy(), f->getArg(1), i));
  b.CreateStore(q, b.CreateInBoundsGEP(b.getInt32Ty(), f->getArg(2), i));
  b.CreateBr(next);
  b.SetInsertPoint(next);
  Value* following = b.CreateAdd(i, b.getInt64(1));
  i->addIncoming(following, next);
  b.CreateCondBr(b.CreateICmpULT(following, b.getInt64(lanes)), lane, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return f;
}

// Calls it for one vector, at `at`.
std::pair<Value*, Value*> reduce_part(Ir& at, int lanes, Value* x, Value* r, Value* q) {
  llvm::Function& f = *at.GetInsertBlock()->getParent();
  Ir entry(&f.getEntryBlock(), f.getEntryBlock().begin());
  Value* buffers[3];
  Value* values[] = {x, r, q};
  for (int i = 0; i < 3; ++i) {
    auto* buffer = entry.CreateAlloca(values[i]->getType());
    buffer->setAlignment(llvm::Align(64));
    buffers[i] = buffer;
    at.CreateAlignedStore(values[i], buffer, llvm::Align(64));
  }
  at.CreateCall(reduce_large(f, lanes), buffers);
  return {at.CreateAlignedLoad(r->getType(), buffers[1], llvm::Align(64)),
          at.CreateAlignedLoad(q->getType(), buffers[2], llvm::Align(64))};
}

// Is any lane of any part beyond the fast range?
Value* any_large(Builder& b, const Vec& x) {
  const Vec mask = b.gt(b.abs(x), f32(b, kLargest));
  Value* any = mask.part(0);
  for (size_t u = 1; u < mask.parts.size(); ++u) any = b.ir.CreateOr(any, mask.part(u));
  const int lanes = b.hooks().lanes();
  return lanes == 1 ? any : b.ir.CreateICmpNE(b.ir.CreateBitCast(any, b.ir.getIntNTy(lanes)), b.ir.getIntN(lanes, 0));
}

// Corrects r and the quadrant q of lanes out of the fast range, behind a branch that is hardly ever taken.
void correct_large(Builder& b, const Vec& x, Vec& r, Vec& q) {
  const int lanes = b.hooks().lanes();
  if (x.uniform) {
    std::tie(r.parts[0], q.parts[0]) = reduce_part(b.hoist, lanes, x.part(0), r.part(0), q.part(0));
    return;
  }
  Value* any = any_large(b, x);
  llvm::BasicBlock* before = b.ir.GetInsertBlock();
  auto* rare = llvm::BasicBlock::Create(b.context(), "large", before->getParent());
  auto* after = llvm::BasicBlock::Create(b.context(), "reduced", before->getParent());
  b.ir.CreateCondBr(any, rare, after);
  b.ir.SetInsertPoint(rare);
  std::vector<std::pair<Value*, Value*>> corrected;
  for (size_t u = 0; u < r.parts.size(); ++u) {
    corrected.push_back(reduce_part(b.ir, lanes, x.part(u), r.part(u), q.part(u)));
  }
  b.ir.CreateBr(after);
  b.ir.SetInsertPoint(after);
  auto join = [&](Value* fast, Value* slow) {
    llvm::PHINode* phi = b.ir.CreatePHI(fast->getType(), 2);
    phi->addIncoming(fast, before);
    phi->addIncoming(slow, rare);
    return phi;
  };
  for (size_t u = 0; u < r.parts.size(); ++u) {
    r.parts[u] = join(r.parts[u], corrected[u].first);
    q.parts[u] = join(q.parts[u], corrected[u].second);
  }
}

// sin(x + quarter turns * pi/2)
Vec sine(Builder& b, const Vec& x, int quarter_turns) {
  constexpr double kRounder = 0x1.8p23;
  const Vec image = b.fma(x, f32(b, 0.6366197723675814), f32(b, kRounder));
  const Vec k = b.sub(image, f32(b, kRounder));
  Vec r = b.fma(k, f32(b, -1.5707963705062866), x);
  r = b.fma(k, f32(b, 4.371138828673793e-08), r);
  r = b.fma(k, f32(b, 1.7151245100058819e-15), r);
  Vec quadrant = b.bits(image);
  correct_large(b, x, r, quadrant);
  const Vec s = b.mul(r, r);
  const Vec p = b.horner(s, {2.837246939e-06, -0.0001985349809, 0.008333380334, -0.1666666716});
  const Vec sin = b.fma(p, b.mul(s, r), r);
  const Vec q = b.horner(s, {2.443066842e-05, -0.001388730132, 0.04166664556});
  const Vec cos = b.fma(b.fma(q, s, f32(b, -0.5)), s, f32(b, 1));
  if (quarter_turns != 0) quadrant = b.add(quadrant, i32(b, quarter_turns));
  const Vec use_cos = b.ne(b.and_(quadrant, i32(b, 1)), i32(b, 0));
  const Vec sign = b.shl_bits(b.and_(quadrant, i32(b, 2)), 30);
  return b.from_bits(b.xor_(b.bits(b.select(use_cos, cos, sin)), sign));
}

}  // namespace

Vec Builder::sin(const Vec& x) {
  // k = 0 leaves r = x, except that -0 + 0 is 0.
  return select(eq(x, f32(*this, 0)), x, sine(*this, x, 0));
}

Vec Builder::cos(const Vec& x) { return sine(*this, x, 1); }

}  // namespace fxjit::inline v0::codegen
