// Loads and stores of one step: contiguous, masked, broadcast, strided.
#include "codegen/emission.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {

using kernel::StrideClass;
using llvm::Value;

namespace {

unsigned bits_of(DType t) { return 8 * size_of(t); }

}  // namespace

Vec Emission::from_storage(std::vector<Value*> parts, DType t) {
  Vec v;
  v.type = compute_type(t);
  for (Value* p : parts) {
    if (is_half(t)) p = hooks.half_from_storage(b.ir, p, t);
    if (t == DType::Bool) p = b.ir.CreateICmpNE(p, llvm::Constant::getNullValue(p->getType()));
    v.parts.push_back(p);
  }
  return v;
}

std::vector<Value*> Emission::to_storage(const Vec& value, DType t) {
  FXJIT_CHECK(value.type == compute_type(t), "a store of another type than the buffer's");
  std::vector<Value*> parts;
  for (int u = 0; u < b.vectors(); ++u) {
    Value* p = value.part(u);
    if (is_half(t)) p = hooks.half_to_storage(b.ir, p, t);
    if (t == DType::Bool) p = b.ir.CreateZExt(p, b.widen(b.ir.getInt8Ty()));
    parts.push_back(p);
  }
  return parts;
}

Vec Emission::load_uniform(int buffer) {
  const DType t = k.buffers[buffer].dtype;
  Value* v = b.hoist.CreateLoad(b.storage_type(t), bases_[buffer]);
  if (is_half(t)) v = hooks.half_from_storage(b.hoist, v, t);
  if (t == DType::Bool) v = b.hoist.CreateICmpNE(v, b.hoist.getInt8(0));
  return b.uniform(v, compute_type(t));
}

// ---- contiguous ----

Value* Emission::stage() {
  if (!stage_) {
    Ir at(entry_, entry_->begin());
    auto* buffer = at.CreateAlloca(llvm::ArrayType::get(at.getInt64Ty(), hooks.lanes()), nullptr, "stage");
    buffer->setAlignment(llvm::Align(64));
    stage_ = buffer;
  }
  return stage_;
}

Vec Emission::load_contiguous(Value* base, DType t, const Step& step) {
  llvm::Type* element = b.storage_type(t);
  llvm::Type* type = b.widen(element);
  const llvm::Align align(size_of(t));
  Value* place = b.ir.CreateInBoundsGEP(element, base, step.index);
  std::vector<Value*> parts;
  if (!step.remaining) {
    for (int u = 0; u < b.vectors(); ++u) {
      Value* p = u == 0 ? place : b.ir.CreateConstInBoundsGEP1_64(element, place, u * hooks.lanes());
      parts.push_back(b.ir.CreateAlignedLoad(type, p, align));
    }
  } else if (hooks.has_masked_access(bits_of(t))) {
    parts.push_back(b.ir.CreateMaskedLoad(type, place, align, step.mask, llvm::Constant::getNullValue(type)));
  } else {
    Value* bytes = b.ir.CreateMul(step.remaining, i64(size_of(t)));
    b.ir.CreateMemCpy(stage(), llvm::Align(64), place, align, bytes);
    parts.push_back(b.ir.CreateAlignedLoad(type, stage(), llvm::Align(64)));
  }
  return from_storage(std::move(parts), t);
}

void Emission::store_contiguous(Value* base, DType t, const Vec& value, const Step& step, bool nontemporal) {
  llvm::Type* element = b.storage_type(t);
  const llvm::Align align(size_of(t));
  Value* place = b.ir.CreateInBoundsGEP(element, base, step.index);
  const std::vector<Value*> parts = to_storage(value, t);
  if (!step.remaining) {
    for (int u = 0; u < b.vectors(); ++u) {
      Value* p = u == 0 ? place : b.ir.CreateConstInBoundsGEP1_64(element, place, u * hooks.lanes());
      llvm::StoreInst* store = b.ir.CreateAlignedStore(parts[u], p, align);
      if (!nontemporal) continue;
      store->setAlignment(llvm::Align(std::min<size_t>(64, hooks.lanes() * size_of(t))));
      auto* one = llvm::ConstantAsMetadata::get(b.ir.getInt32(1));
      store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(module->getContext(), one));
    }
  } else if (hooks.has_masked_access(bits_of(t))) {
    b.ir.CreateMaskedStore(parts[0], place, align, step.mask);
  } else {
    b.ir.CreateAlignedStore(parts[0], stage(), llvm::Align(64));
    Value* bytes = b.ir.CreateMul(step.remaining, i64(size_of(t)));
    b.ir.CreateMemCpy(place, align, stage(), llvm::Align(64), bytes);
  }
}

// ---- any place ----

Vec Emission::load(int buffer, const Step& step) {
  const DType t = k.buffers[buffer].dtype;
  if (inner_stride(buffer) == StrideClass::Unit) return load_contiguous(bases_[buffer], t, step);
  return from_storage(read_strided(buffer, step), t);
}

void Emission::store(int buffer, const Vec& value, const Step& step) {
  const DType t = k.buffers[buffer].dtype;
  switch (inner_stride(buffer)) {
    case StrideClass::Unit:
      return store_contiguous(bases_[buffer], t, value, step, schedule.nontemporal);
    case StrideClass::Any:
      return write_strided(buffer, to_storage(value, t), step);
    case StrideClass::Zero: {  // a row's result: one element
      const int vectors = b.vectors();
      b.set_vectors(1);
      Value* v = to_storage(value, t)[0];
      b.set_vectors(vectors);
      if (hooks.lanes() > 1) v = b.ir.CreateExtractElement(v, uint64_t{0});
      b.ir.CreateAlignedStore(v, bases_[buffer], llvm::Align(size_of(t)));
      return;
    }
  }
}

std::vector<Value*> Emission::read_strided(int buffer, const Step& step) {
  const DType t = k.buffers[buffer].dtype;
  const int lanes = hooks.lanes();
  llvm::Type* element = b.storage_type(t);
  llvm::Type* type = b.widen(element);
  Value* by = stride(buffer, k.axes.size() - 1);
  std::vector<Value*> parts;
  for (int u = 0; u < b.vectors(); ++u) {
    Value* index = u == 0 ? step.index : b.ir.CreateAdd(step.index, i64(u * lanes));
    Value* place = b.ir.CreateInBoundsGEP(element, bases_[buffer], b.ir.CreateMul(index, by));
    if (lanes == 1) {
      parts.push_back(b.ir.CreateAlignedLoad(element, place, llvm::Align(size_of(t))));
    } else if (!step.remaining) {
      parts.push_back(collect(element, place, by));
    } else {
      b.ir.CreateCall(strided_copy(size_of(t), true), {stage(), place, by, step.remaining});
      parts.push_back(b.ir.CreateAlignedLoad(type, stage(), llvm::Align(64)));
    }
  }
  return parts;
}

void Emission::write_strided(int buffer, llvm::ArrayRef<Value*> parts, const Step& step) {
  const DType t = k.buffers[buffer].dtype;
  const int lanes = hooks.lanes();
  llvm::Type* element = b.storage_type(t);
  Value* by = stride(buffer, k.axes.size() - 1);
  for (int u = 0; u < b.vectors(); ++u) {
    Value* index = u == 0 ? step.index : b.ir.CreateAdd(step.index, i64(u * lanes));
    Value* place = b.ir.CreateInBoundsGEP(element, bases_[buffer], b.ir.CreateMul(index, by));
    if (lanes == 1) {
      b.ir.CreateAlignedStore(parts[u], place, llvm::Align(size_of(t)));
    } else {
      b.ir.CreateAlignedStore(parts[u], stage(), llvm::Align(64));
      if (step.remaining) {
        b.ir.CreateCall(strided_copy(size_of(t), false), {place, stage(), by, step.remaining});
      } else {
        spread(element, place, by);
      }
    }
  }
}

// Lane by lane: gathers are slow on AMD and, with their microcode fixed, on Intel (stride 2 on Zen 4: 1.7 ns an
// element, this way 0.3).
Value* Emission::collect(llvm::Type* element, Value* place, Value* by) {
  Value* vector = llvm::PoisonValue::get(b.widen(element));
  for (int lane = 0; lane < hooks.lanes(); ++lane) {
    if (lane > 0) place = b.ir.CreateInBoundsGEP(element, place, by);
    Value* v = b.ir.CreateAlignedLoad(element, place, llvm::Align(element->getPrimitiveSizeInBits() / 8));
    vector = b.ir.CreateInsertElement(vector, v, lane);
  }
  return vector;
}

// From the stage, by the integer unit.
void Emission::spread(llvm::Type* element, Value* place, Value* by) {
  const llvm::Align align(element->getPrimitiveSizeInBits() / 8);
  llvm::Type* word = b.ir.getIntNTy(element->getPrimitiveSizeInBits());
  for (int lane = 0; lane < hooks.lanes(); ++lane) {
    if (lane > 0) place = b.ir.CreateInBoundsGEP(element, place, by);
    Value* from = b.ir.CreateConstInBoundsGEP1_64(word, stage(), lane);
    b.ir.CreateAlignedStore(b.ir.CreateAlignedLoad(word, from, align), place, align);
  }
}

// void copy(ptr to, ptr from, i64 stride, i64 count), count >= 1: elements of `bytes` bytes; the stride is that of
// `from` where the function collects, else of `to`. Out of line: one lane at a time is code for 16.
llvm::Function* Emission::strided_copy(unsigned bytes, bool collect) {
  const std::string name = (collect ? "collect" : "spread") + std::to_string(bytes);
  if (llvm::Function* f = module->getFunction(name)) return f;
  Ir at(module->getContext());
  llvm::Type* i64_type = at.getInt64Ty();
  llvm::Type* element = at.getIntNTy(8 * bytes);
  auto* type = llvm::FunctionType::get(at.getVoidTy(), {at.getPtrTy(), at.getPtrTy(), i64_type, i64_type}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, *module);
  f->setDoesNotThrow();
  auto* entry = llvm::BasicBlock::Create(module->getContext(), "entry", f);
  auto* head = llvm::BasicBlock::Create(module->getContext(), "lane", f);
  auto* done = llvm::BasicBlock::Create(module->getContext(), "done", f);
  at.SetInsertPoint(entry);
  at.CreateBr(head);
  at.SetInsertPoint(head);
  llvm::PHINode* i = at.CreatePHI(i64_type, 2, "i");
  i->addIncoming(i64(0), entry);
  Value* far = at.CreateMul(i, f->getArg(2));
  Value* from = at.CreateInBoundsGEP(element, f->getArg(1), collect ? far : i);
  Value* to = at.CreateInBoundsGEP(element, f->getArg(0), collect ? i : far);
  at.CreateAlignedStore(at.CreateAlignedLoad(element, from, llvm::Align(bytes)), to, llvm::Align(bytes));
  Value* next = at.CreateAdd(i, i64(1));
  i->addIncoming(next, head);
  at.CreateCondBr(at.CreateICmpULT(next, f->getArg(3)), head, done);
  at.SetInsertPoint(done);
  at.CreateRetVoid();
  return f;
}

}  // namespace fxjit::inline v0::codegen
