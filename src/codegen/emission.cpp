#include "codegen/emission.h"

#include <llvm/ADT/APFloat.h>

#include "support/errors.h"

namespace fxjit::inline v0::codegen {

using kernel::Expr;
using kernel::ExprKind;
using kernel::StrideClass;
using llvm::Value;
using ops::OpId;

namespace {

std::vector<Level> levels_of(const kernel::Kernel& k, const Emission& e) {
  std::vector<Level> levels;
  for (const Expr& x : k.exprs) {
    Level level = Level::Launch;
    for (int32_t a : x.args) {
      if (a >= 0) level = std::max(level, levels[a]);
    }
    if (x.kind == ExprKind::Load) level = e.inner_stride(x.index) == StrideClass::Zero ? Level::Unit : Level::Element;
    if (x.kind == ExprKind::Reduce) level = Level::Unit;
    levels.push_back(level);
  }
  return levels;
}

std::vector<char> needed_of(const kernel::Kernel& k) {
  std::vector<char> needed(k.exprs.size());
  for (const kernel::Store& s : k.stores) needed[s.expr] = true;
  for (size_t i = k.exprs.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (int32_t a : k.exprs[i].args) {
      if (a >= 0) needed[a] = true;
    }
  }
  return needed;
}

// Rows whose result is representable in a half type when all operands are of that type.
bool keeps_representable(OpId op) {
  constexpr OpId exact[] = {OpId::neg,   OpId::abs,   OpId::minimum,   OpId::maximum, OpId::clamp,
                            OpId::where, OpId::relu,  OpId::threshold, OpId::sign,    OpId::floor,
                            OpId::ceil,  OpId::trunc, OpId::round};
  return std::find(std::begin(exact), std::end(exact), op) != std::end(exact);
}

// The nearest value of a half type, through float as everywhere.
double rounded(double v, DType t) {
  if (!is_half(t)) return v;
  llvm::APFloat f(static_cast<float>(v));
  bool inexact = false;
  const auto& semantics = t == DType::Float16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
  f.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  f.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return f.convertToDouble();
}

}  // namespace

Emission::Emission(llvm::LLVMContext& context, const kernel::Kernel& k, const Schedule& s, const TargetHooks& hooks,
                   const std::string& symbol)
    : k(k),
      schedule(s),
      hooks(hooks),
      module(std::make_unique<llvm::Module>(symbol, context)),
      b(hooks, context, s.fast_math) {
  const TargetDescription target = hooks.description();
  module->setTargetTriple(target.triple);
  module->setDataLayout(target.data_layout);
  function = hooks.declare_kernel(*module, symbol);
  entry_ = new_block("entry");
  b.ir.SetInsertPoint(entry_);
  b.hoist_into(entry_);
  if (hooks.lanes() > 1) {
    b.set_constants(s.profile == Profile::Straight ? Constants::OncePerBlock : Constants::OncePerFunction);
  }
  levels = levels_of(k, *this);
  needed = needed_of(k);
  values.resize(k.exprs.size());
  iteration = hooks.iteration(b.ir, *function);
  for (size_t a = 0; a < k.axes.size(); ++a) {
    extents.push_back(hooks.launch_field(b.ir, *function, LaunchField::Extent, a));
  }
  if (k.axes.empty()) extents.push_back(i64(1));
  strides_.resize(k.buffers.size() * k.axes.size());
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    pointers_.push_back(hooks.launch_field(b.ir, *function, LaunchField::Pointer, i));
    for (size_t a = 0; a < k.axes.size(); ++a) {
      if (k.buffers[i].strides[a] != StrideClass::Any) continue;
      const size_t index = i * k.axes.size() + a;
      strides_[index] = hooks.launch_field(b.ir, *function, LaunchField::Stride, index);
    }
  }
  bases_ = pointers_;
  evaluate(Level::Launch, nullptr);
}

llvm::BasicBlock* Emission::new_block(const char* name) {
  return llvm::BasicBlock::Create(module->getContext(), name, function);
}

StrideClass Emission::inner_stride(int buffer) const {
  return k.axes.empty() ? StrideClass::Unit : k.buffers[buffer].strides.back();
}

Value* Emission::stride(int buffer, size_t axis) { return strides_[buffer * k.axes.size() + axis]; }

namespace {

// Divisors are met before it is known that there is a unit at all.
Value* at_least_one(Ir& b, Value* v) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, v, b.getInt64(1)); }

}  // namespace

// The index of the outer axes with this number in row-major order.
std::vector<Value*> Emission::outer_index(Value* number) {
  std::vector<Value*> index(outer_axes());
  for (size_t a = outer_axes(); a-- > 0;) {
    Value* extent = a == 0 ? nullptr : at_least_one(b.ir, extents[a]);
    index[a] = extent ? b.ir.CreateURem(number, extent) : number;
    if (extent) number = b.ir.CreateUDiv(number, extent);
  }
  return index;
}

void Emission::enter(llvm::ArrayRef<Value*> index) {
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    Value* offset = nullptr;
    for (size_t a = 0; a < outer_axes(); ++a) {
      const StrideClass c = k.buffers[i].strides[a];
      if (c == StrideClass::Zero) continue;
      Value* term = c == StrideClass::Unit ? index[a] : b.ir.CreateMul(index[a], stride(i, a));
      offset = offset ? b.ir.CreateAdd(offset, term) : term;
    }
    llvm::Type* type = b.storage_type(k.buffers[i].dtype);
    bases_[i] = offset ? b.ir.CreateInBoundsGEP(type, pointers_[i], offset) : pointers_[i];
  }
}

// Consecutive units are counted up like an odometer, last axis first: short rows cannot afford divisions.
void Emission::each_unit(Value* blocks, llvm::function_ref<void(Value*)> body, const char* name) {
  Value* last = b.ir.CreateSub(iteration.end, i64(1));
  auto split = [&](Value* unit, Value*& block) {
    block = unit;
    if (!blocks) return outer_index(unit);
    Value* divisor = at_least_one(b.ir, blocks);
    block = b.ir.CreateURem(unit, divisor);
    return outer_index(b.ir.CreateUDiv(unit, divisor));
  };
  if (!hooks.consecutive_units() || outer_axes() == 0) {
    loop(
        iteration.begin, last, iteration.unit_step, {},
        [&](Value* unit, auto) {
          Value* block = nullptr;
          enter(split(unit, block));
          body(block);
        },
        name);
    return;
  }
  Value* block = nullptr;
  std::vector<Value*> carried = split(iteration.begin, block);
  if (blocks) carried.push_back(block);
  loop(
      iteration.begin, last, i64(1), carried,
      [&](Value* unit, llvm::MutableArrayRef<Value*> digits) {
        enter(digits.take_front(outer_axes()));
        body(blocks ? digits.back() : unit);
        Value* carry = i64(1);
        for (size_t d = digits.size(); d-- > 0;) {
          Value* next = b.ir.CreateAdd(digits[d], carry);
          Value* full = b.ir.CreateICmpEQ(next, d == outer_axes() ? blocks : extents[d]);
          digits[d] = d == 0 ? next : b.ir.CreateSelect(full, i64(0), next);
          carry = b.ir.CreateZExt(full, b.ir.getInt64Ty());
        }
      },
      name);
}

void Emission::evaluate(Level level, const Step* step, const std::vector<char>* only) {
  for (size_t i = 0; i < k.exprs.size(); ++i) {
    if (!needed[i] || levels[i] != level || (only && !(*only)[i])) continue;
    if (k.exprs[i].kind != ExprKind::Reduce) values[i] = evaluate_one(k.exprs[i], step);
  }
}

Vec Emission::evaluate_one(const Expr& e, const Step* step) {
  switch (e.kind) {
    case ExprKind::Load:
      return inner_stride(e.index) == StrideClass::Zero ? load_uniform(e.index) : load(e.index, *step);
    case ExprKind::Scalar: {
      Value* bits = hooks.launch_field(b.hoist, *function, LaunchField::Scalar, e.index);
      return b.uniform(b.scalar_cast(bits, k.scalars[e.index], e.dtype), compute_type(e.dtype));
    }
    case ExprKind::Const: {
      if (!is_floating(e.dtype)) return b.constant_int(static_cast<int64_t>(e.bits), e.dtype);
      double v;
      std::memcpy(&v, &e.bits, sizeof v);
      return b.constant(rounded(v, e.dtype), e.dtype);
    }
    case ExprKind::Extent:
      return b.uniform(b.scalar_cast(extents[e.index], DType::Int64, e.dtype), compute_type(e.dtype));
    case ExprKind::Op: {
      llvm::SmallVector<Vec, 3> args;
      bool same = true;
      for (int32_t a : e.args) {
        if (a < 0) break;
        args.push_back(values[a]);
        same &= k.exprs[a].dtype == e.dtype || k.exprs[a].dtype == DType::Bool;
      }
      const Vec result = emit_op(b, e.op, args);
      return is_half(e.dtype) && !(same && keeps_representable(e.op)) ? b.round_to(result, e.dtype) : result;
    }
    case ExprKind::Cast:
      return b.cast(values[e.args[0]], k.exprs[e.args[0]].dtype, e.dtype);
    case ExprKind::Reduce:
      break;
  }
  FXJIT_UNREACHABLE("a reduction is not an expression of a step");
}

Step Emission::partial_step(Value* index, Value* end) {
  const int lanes = hooks.lanes();
  Step step;
  step.index = index;
  step.remaining = b.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b.ir.CreateSub(end, index), i64(lanes));
  std::vector<llvm::Constant*> iota;
  for (int i = 0; i < lanes; ++i) iota.push_back(b.ir.getInt32(i));
  Value* count = b.splat(b.ir, b.ir.CreateTrunc(step.remaining, b.ir.getInt32Ty()));
  step.mask = b.ir.CreateICmpUGT(count, llvm::ConstantVector::get(iota));
  return step;
}

Value* Emission::loop(Value* from, Value* last, Value* by, llvm::MutableArrayRef<Value*> carried, LoopBody body,
                      const char* name) {
  llvm::BasicBlock* before = b.ir.GetInsertBlock();
  llvm::BasicBlock* head = new_block(name);
  llvm::BasicBlock* after = new_block("after");
  b.ir.CreateCondBr(b.ir.CreateICmpSLE(from, last), head, after);
  b.ir.SetInsertPoint(head);
  llvm::PHINode* i = b.ir.CreatePHI(from->getType(), 2, "i");
  i->addIncoming(from, before);
  llvm::SmallVector<llvm::PHINode*, 8> phis;
  llvm::SmallVector<Value*, 8> current;
  for (Value* v : carried) {
    phis.push_back(b.ir.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, before);
    current.push_back(phis.back());
  }
  body(i, current);
  Value* next = b.ir.CreateAdd(i, by);
  llvm::BasicBlock* latch = b.ir.GetInsertBlock();
  b.ir.CreateCondBr(b.ir.CreateICmpSLE(next, last), head, after);
  i->addIncoming(next, latch);
  b.ir.SetInsertPoint(after);
  auto join = [&](Value* untouched, Value* last_value) {
    llvm::PHINode* phi = b.ir.CreatePHI(untouched->getType(), 2);
    phi->addIncoming(untouched, before);
    phi->addIncoming(last_value, latch);
    return phi;
  };
  Value* end = join(from, next);
  for (size_t c = 0; c < carried.size(); ++c) {
    phis[c]->addIncoming(current[c], latch);
    carried[c] = join(carried[c], current[c]);
  }
  return end;
}

}  // namespace fxjit::inline v0::codegen
