#include "codegen/forward/body.h"

#include "runtime/abi.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {}  // namespace

llvm::Value* Body::slots() {
  if (!slots_) slots_ = f.slots();
  return slots_;
}

llvm::Value* Body::table_function(int64_t offset) {
  if (!table_) table_ = f.load(host().ptr(), f.frame(), offsetof(fxjit_frame, table), "table");
  return f.load(host().ptr(), table_, offset);
}

llvm::Value* Body::stack(llvm::Type* type, int64_t count, const char* name) {
  llvm::BasicBlock& entry = f.function()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type, host().i64(count), name);
}

llvm::Value* Body::scalar(int32_t input) {
  if (const auto it = scalars_.find(input); it != scalars_.end()) return it->second;
  const ForwardInput& number = inputs_.inputs[input];
  llvm::Value* v = number.derived ? ir().CreateBitCast(evaluate(*number.derived), host().i64())
                                  : f.load(host().i64(), f.function()->getArg(2), input * kWord, "scalar");
  return scalars_[input] = v;
}

llvm::Value* Body::real(const NumberOperand& o) {
  llvm::Type* type = ir().getDoubleTy();
  if (o.number < 0) return llvm::ConstantFP::get(type, o.constant);
  llvm::Value* bits = scalar(o.number);
  return inputs_.inputs[o.number].is_float ? ir().CreateBitCast(bits, type) : ir().CreateSIToFP(bits, type);
}

llvm::Value* Body::evaluate(const NumberExpr& e) {
  switch (e.op) {
    case NumberExpr::Add:
      return ir().CreateFAdd(real(e.a), real(e.b));
    case NumberExpr::Sub:
      return ir().CreateFSub(real(e.a), real(e.b));
    case NumberExpr::Mul:
      return ir().CreateFMul(real(e.a), real(e.b));
    case NumberExpr::Div:
      return ir().CreateFDiv(real(e.a), real(e.b));
    case NumberExpr::Neg:
      return ir().CreateFNeg(real(e.a));
  }
  FXJIT_UNREACHABLE("arithmetic on numbers");
}

llvm::Value* Body::input_tensor(int32_t input) {
  llvm::Value*& v = input_tensors_[input];
  if (!v) {
    const fx::Node* node = inputs_.inputs[input].node;
    v = f.load(host().ptr(), f.function()->getArg(1), input * kWord, node ? std::string(node->name()) : "unused");
  }
  return v;
}

// Sizes and strides lie side by side, inside the tensor or outside, by rank: the rank has been guarded.
llvm::Value* Body::metadata(int32_t input, int32_t dim, bool stride) {
  const auto rank = static_cast<int32_t>(inputs_.inputs[input].type->rank());
  FXJIT_CHECK(dim < rank, "dimension ", dim, " of an input of rank ", rank);
  llvm::Value*& v = sizes_[(int64_t{input} << 32) + 2 * dim + stride];
  if (v) return v;
  const bool is_inline = rank <= layout().inline_rank;
  const int64_t strides_at = (is_inline ? layout().inline_rank : rank) * kWord;
  llvm::Value* base = input_tensor(input);
  base = is_inline ? f.at(base, layout().inline_sizes) : f.load(host().ptr(), base, layout().inline_sizes, "sizes");
  return v = f.load(host().i64(), base, dim * kWord + (stride ? strides_at : 0), stride ? "stride" : "size");
}

llvm::Value* Body::size(int32_t input, int32_t dim) { return metadata(input, dim, false); }
llvm::Value* Body::stride(int32_t input, int32_t dim) { return metadata(input, dim, true); }

llvm::Value* Body::read_symbol(const SymSource& source) {
  switch (source.kind) {
    case SymSource::Size:
      return size(source.input, source.dim);
    case SymSource::Stride:
      return stride(source.input, source.dim);
    case SymSource::Int:
      return scalar(source.input);
  }
  FXJIT_UNREACHABLE("a symbol's source");
}

llvm::Value* Body::symbol(int64_t index) {
  llvm::Value*& v = symbols_[index];
  if (v) return v;
  if (!symbols_stored_) return v = read_symbol(env_.symbols()[index]);
  llvm::Value* base = f.load(host().ptr(), f.frame(), offsetof(fxjit_frame, symbols), "symbols");
  const auto first = static_cast<int64_t>(inputs_.callee_dims.size() + inputs_.callee_numbers.size());
  return v = f.load(host().i64(), base, (first + index) * kWord, "s" + llvm::Twine(index));
}

llvm::Value* Body::dim(Dim d) {
  if (d.id < 0) return host().i64(0);
  if (env_.is_const(d)) return host().i64(env_.expr(d).value);
  if (const auto it = dims_.find(d.id); it != dims_.end()) return it->second;
  llvm::Value* v = evaluate(env_.expr(d));
  dims_[d.id] = v;
  return v;
}

llvm::Value* Body::product(const std::vector<Dim>& factors) {
  llvm::Value* v = host().i64(1);
  for (Dim d : factors) v = f.mul(v, dim(d));
  return v;
}

llvm::Value* Body::evaluate(const SymExpr& e) {
  switch (e.kind) {
    case SymExpr::Const:
      return host().i64(e.value);
    case SymExpr::Symbol:
      return symbol(e.value);
    case SymExpr::Add:
      return ir().CreateAdd(dim(e.a), dim(e.b));
    case SymExpr::Mul:
      return f.mul(dim(e.a), dim(e.b));
    case SymExpr::FloorDiv:
      return floor_divide(dim(e.a), e.b);
    case SymExpr::Mod: {
      llvm::Value* a = dim(e.a);
      llvm::Value* whole = ir().CreateMul(floor_divide(a, e.b), dim(e.b));
      // By 0 the quotient is 0, and so is the remainder: as in ShapeEnv::evaluate.
      llvm::Value* rest = ir().CreateSub(a, whole);
      return ir().CreateSelect(ir().CreateICmpEQ(dim(e.b), host().i64(0)), host().i64(0), rest);
    }
    case SymExpr::Max: {
      llvm::Value *a = dim(e.a), *b = dim(e.b);
      return ir().CreateSelect(ir().CreateICmpSGT(a, b), a, b);
    }
  }
  FXJIT_UNREACHABLE("a symbolic expression");
}

// Towards minus infinity. The division traps for 0 and for the smallest number by -1: those divisors are replaced.
llvm::Value* Body::floor_divide(llvm::Value* a, Dim b) {
  llvm::Value* divisor = dim(b);
  if (env_.is_const(b)) {
    const int64_t v = env_.expr(b).value;
    if (v == -1) return ir().CreateNeg(a);
    return v > 0 && (v & (v - 1)) == 0 ? ir().CreateAShr(a, host().i64(__builtin_ctzll(v))) : divide_by(a, divisor);
  }
  llvm::Value* zero = ir().CreateICmpEQ(divisor, host().i64(0));
  llvm::Value* minus = ir().CreateICmpEQ(divisor, host().i64(-1));
  llvm::Value* safe = ir().CreateSelect(ir().CreateOr(zero, minus), host().i64(1), divisor);
  llvm::Value* q = divide_by(a, safe);
  q = ir().CreateSelect(minus, ir().CreateNeg(a), q);
  return ir().CreateSelect(zero, host().i64(0), q);
}

llvm::Value* Body::divide_by(llvm::Value* a, llvm::Value* b) {
  llvm::Value* q = ir().CreateSDiv(a, b);
  llvm::Value* r = ir().CreateSub(a, ir().CreateMul(q, b));
  llvm::Value* inexact = ir().CreateICmpNE(r, host().i64(0));
  llvm::Value* opposite = ir().CreateICmpSLT(ir().CreateXor(a, b), host().i64(0));
  llvm::Value* down = ir().CreateAnd(inexact, opposite);
  return ir().CreateSelect(down, ir().CreateSub(q, host().i64(1)), q);
}

llvm::Value* Body::tensor(int32_t value) {
  const ForwardValue& v = plan_.values[value];
  if (v.where == ForwardValue::Input) return input_tensor(v.index);
  FXJIT_CHECK(v.where == ForwardValue::Slot, "a value without a tensor");
  llvm::Value*& t = tensors_[value];
  if (!t) t = f.load(host().ptr(), slots(), v.index * kWord, "tensor");
  return t;
}

llvm::Value* Body::storage_data(llvm::Value* tensor) {
  llvm::Value* storage = f.load(host().ptr(), tensor, layout().storage, "storage");
  return f.load(host().ptr(), storage, layout().storage_data, "storage_data");
}

llvm::Value* Body::data(int32_t value) {
  llvm::Value*& p = data_[value];
  if (p) return p;
  const ForwardValue& v = plan_.values[value];
  if (v.where == ForwardValue::Scratch) {
    llvm::Value* arena = f.load(host().ptr(), f.frame(), offsetof(fxjit_frame, arena), "arena");
    return p = f.advance(arena, dim(plan_.regions[v.index].offset), "scratch");
  }
  llvm::Value* t = tensor(value);
  FXJIT_CHECK(v.type != nullptr, "a kernel's operand without a type");
  llvm::Value* offset = f.load(host().i64(), t, layout().storage_offset, "offset");
  const auto bytes = static_cast<int64_t>(size_of(v.type->dtype));
  return p = f.advance(storage_data(t), f.mul(offset, host().i64(bytes)), "data");
}

void Body::forget_data() {
  std::erase_if(data_, [&](const auto& e) { return plan_.values[e.first].where != ForwardValue::Scratch; });
}

llvm::Value* Body::writable_data(int32_t value) {
  const ForwardValue& v = plan_.values[value];
  if (v.where == ForwardValue::Scratch) return data(value);
  auto* type = llvm::FunctionType::get(host().ptr(), {host().ptr(), host().i32()}, false);
  llvm::Value* function = table_function(offsetof(fxjit_table, data));
  forget_data();  // what was read before may have been the shared memory that this call replaces
  return data_[value] = ir().CreateCall(type, function, {f.frame(), host().i32(v.index)}, "writable");
}

}  // namespace fxjit::inline v0::codegen
