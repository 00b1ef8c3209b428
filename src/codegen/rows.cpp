// Row kernels: reductions along the last axis, in passes over one row after the other.
#include "codegen/reduction.h"
#include "codegen/row_plan.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {

using kernel::ExprKind;
using llvm::Value;

namespace {

// Steps of a chunk of a cascaded sum: 64 additions to each accumulator, then one compensated addition.
constexpr int64_t kChunkSteps = 64;

class RowEmitter {
 public:
  explicit RowEmitter(Emission& e) : e_(e), b_(e.b), plan_(plan_rows(e.k, e.levels, e.needed, e.schedule)) {}

  void run() {
    allocate_scratch();
    e_.each_unit(nullptr, [&](Value*) { emit_row(); }, "row");
    if (e_.schedule.nontemporal) e_.hooks.fence_nontemporal(b_.ir);
    b_.ir.CreateRetVoid();
  }

 private:
  using Carried = llvm::SmallVector<Value*, 16>;

  void allocate_scratch() {
    row_of_.resize(e_.k.exprs.size());
    Value* offset = e_.i64(0);
    std::vector<std::pair<int, Value*>> offsets;
    for (const RowPlan::Kept& kept : plan_.kept) {
      if (kept.buffer >= 0) continue;
      offsets.emplace_back(kept.expr, offset);
      Value* bytes = b_.ir.CreateMul(e_.inner_extent(), e_.i64(size_of(held_type(kept.expr))));
      offset = b_.ir.CreateAnd(b_.ir.CreateAdd(b_.ir.CreateAdd(offset, bytes), e_.i64(63)), e_.i64(-64));
    }
    if (offsets.empty()) return;
    llvm::FunctionCallee callee = e_.module->getOrInsertFunction("fxjit_scratch", b_.ir.getPtrTy(), b_.ir.getInt64Ty());
    Value* base = b_.ir.CreateCall(callee, {offset}, "scratch");
    llvm::BasicBlock* without = e_.new_block("no_scratch");
    llvm::BasicBlock* next = e_.new_block("rows");
    b_.ir.CreateCondBr(b_.ir.CreateIsNull(base), without, next);
    b_.ir.SetInsertPoint(without);
    e_.hooks.report_no_memory(b_.ir, *e_.function);
    b_.ir.CreateRetVoid();
    b_.ir.SetInsertPoint(next);
    b_.hoist_into(next);
    for (auto [id, at] : offsets) row_of_[id] = b_.ir.CreateInBoundsGEP(b_.ir.getInt8Ty(), base, at);
  }

  // Values of half types are kept as the floats they are.
  DType held_type(int id) const { return compute_type(e_.k.exprs[id].dtype); }

  void emit_row() {
    for (const RowPlan::Kept& kept : plan_.kept) {
      if (kept.buffer >= 0) row_of_[kept.expr] = e_.base(kept.buffer);
    }
    for (size_t p = 0; p < plan_.passes.size(); ++p) {
      evaluate_row_values(static_cast<int>(p));
      emit_pass(plan_.passes[p]);
    }
    int last = 0;
    for (int s : plan_.stage) last = std::max(last, s);
    for (int s = static_cast<int>(plan_.passes.size()); s <= last; ++s) evaluate_row_values(s);
    b_.set_vectors(1);
    for (const kernel::Store& s : e_.k.stores) {
      if (e_.inner_stride(s.buffer) == kernel::StrideClass::Zero) e_.store(s.buffer, e_.values[s.expr], Step{});
    }
  }

  // Row values that need no more than the passes so far.
  void evaluate_row_values(int stage) {
    std::vector<char> now(e_.k.exprs.size());
    for (size_t i = 0; i < now.size(); ++i) now[i] = plan_.stage[i] == stage;
    b_.hoist_into(b_.ir.GetInsertBlock());
    e_.evaluate(Level::Unit, nullptr, &now);
  }

  void emit_pass(const RowPass& pass) {
    b_.hoist_into(b_.ir.GetInsertBlock());
    std::vector<Reduction> reductions;
    Carried carried;
    bool cascaded = false;
    for (int id : pass.reductions) {
      reductions.emplace_back(e_, id, pass.vectors, reductions.size());
      reductions.back().start(carried);
      cascaded |= reductions.back().is_cascaded();
    }
    Value* n = e_.inner_extent();
    const int lanes = e_.hooks.lanes();
    span_ = int64_t{pass.vectors} * lanes;
    Value* last = b_.ir.CreateSub(n, e_.i64(span_));
    Totals totals;
    Value* i = cascaded ? emit_chunks(pass, reductions, carried, last, totals)
                        : emit_main(pass, reductions, carried, e_.i64(0), last);
    e_.loop(
        i, b_.ir.CreateSub(n, e_.i64(1)), e_.i64(lanes), carried,
        [&](Value* i, llvm::MutableArrayRef<Value*> c) { emit_step(pass, reductions, c, e_.partial_step(i, n), 1); },
        "tail");
    finish(reductions, carried, totals, last);
  }

  Value* emit_main(const RowPass& pass, const std::vector<Reduction>& reductions, Carried& carried, Value* from,
                   Value* last) {
    return e_.loop(
        from, last, e_.i64(span_), carried,
        [&](Value* i, llvm::MutableArrayRef<Value*> c) { emit_step(pass, reductions, c, Step{i}, pass.vectors); },
        "main");
  }

  void emit_step(const RowPass& pass, const std::vector<Reduction>& reductions, llvm::MutableArrayRef<Value*> carried,
                 const Step& step, int vectors) {
    b_.set_vectors(vectors);
    for (int id : pass.taken) e_.values[id] = e_.load_contiguous(row_of_[id], held_type(id), step);
    e_.evaluate(Level::Element, &step, &pass.computed);
    for (int id : pass.kept) e_.store_contiguous(row_of_[id], held_type(id), e_.values[id], step, false);
    size_t place = 0;
    for (const Reduction& r : reductions) {
      r.accumulate(carried.slice(place, r.width()), e_.values[e_.k.exprs[r.expr()].args[0]], step);
      place += r.width();
    }
    if (!pass.stores) return;
    for (const kernel::Store& s : e_.k.stores) {
      if (e_.inner_stride(s.buffer) != kernel::StrideClass::Zero) e_.store(s.buffer, e_.values[s.expr], step);
    }
  }

  // ---- cascaded sums ----

  // Per cascaded reduction a vector of totals of earlier chunks and one of what their additions lost.
  struct Totals {
    Carried high, low;
  };

  // Runs the main loop chunk by chunk. All chunks but the last are added to the totals; the last one's sums are left in
  // `carried`, so that a row of one chunk pays for none of this.
  Value* emit_chunks(const RowPass& pass, const std::vector<Reduction>& reductions, Carried& carried, Value* last,
                     Totals& totals) {
    llvm::BasicBlock* before = b_.ir.GetInsertBlock();
    llvm::BasicBlock* head = e_.new_block("chunk");
    llvm::BasicBlock* add = e_.new_block("add_chunk");
    llvm::BasicBlock* after = e_.new_block("after_chunks");
    b_.ir.CreateBr(head);
    b_.ir.SetInsertPoint(head);
    std::vector<llvm::PHINode*> phis;
    auto carry = [&](Value* initial) {
      phis.push_back(b_.ir.CreatePHI(initial->getType(), 2));
      phis.back()->addIncoming(initial, before);
      return phis.back();
    };
    Value* start = carry(e_.i64(0));
    for (Value*& v : carried) v = carry(v);
    for (const Reduction& r : reductions) {
      if (!r.is_cascaded()) continue;
      totals.high.push_back(carry(r.identity()));
      totals.low.push_back(carry(r.identity()));
    }
    Value* chunk_last = b_.ir.CreateAdd(start, e_.i64((kChunkSteps - 1) * span_));
    Value* stop = b_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, last, chunk_last);
    Value* i = emit_main(pass, reductions, carried, start, stop);
    b_.ir.CreateCondBr(b_.ir.CreateICmpSLE(i, last), add, after);
    b_.ir.SetInsertPoint(add);
    Carried next = {i};
    Totals sums = totals;
    add_chunk(reductions, carried, sums, next);
    for (size_t t = 0; t < sums.high.size(); ++t) next.append({sums.high[t], sums.low[t]});
    for (size_t p = 0; p < phis.size(); ++p) phis[p]->addIncoming(next[p], b_.ir.GetInsertBlock());
    b_.ir.CreateBr(head);
    b_.ir.SetInsertPoint(after);
    return i;
  }

  // Knuth's two-sum: high + v exactly as a rounded sum and what it lost. Appends the next chunk's initial values.
  void add_chunk(const std::vector<Reduction>& reductions, const Carried& carried, Totals& totals, Carried& next) {
    size_t place = 0, t = 0;
    for (const Reduction& r : reductions) {
      const auto mine = llvm::ArrayRef<Value*>(carried).slice(place, r.width());
      place += r.width();
      if (!r.is_cascaded()) {
        next.append(mine.begin(), mine.end());
        continue;
      }
      Value* v = r.fold_vectors(mine);
      Value* sum = b_.ir.CreateFAdd(totals.high[t], v);
      Value* part = b_.ir.CreateFSub(sum, totals.high[t]);
      Value* lost =
          b_.ir.CreateFAdd(b_.ir.CreateFSub(totals.high[t], b_.ir.CreateFSub(sum, part)), b_.ir.CreateFSub(v, part));
      totals.low[t] = b_.ir.CreateFAdd(totals.low[t], lost);
      totals.high[t] = sum;
      r.start(next);
      ++t;
    }
  }

  void finish(const std::vector<Reduction>& reductions, const Carried& carried, const Totals& totals, Value* last) {
    size_t place = 0, t = 0;
    for (const Reduction& r : reductions) {
      const auto mine = llvm::ArrayRef<Value*>(carried).slice(place, r.width());
      place += r.width();
      Value* v = r.fold_vectors(mine);
      if (r.is_cascaded()) {
        v = add_totals(v, totals.high[t], totals.low[t], last);
        ++t;
      }
      Value* result = r.fold_lanes(v, r.nan_flag(mine));
      b_.hoist_into(b_.ir.GetInsertBlock());
      e_.values[r.expr()] = b_.uniform(result, e_.k.exprs[r.expr()].dtype);
    }
  }

  // high + (low + v), if there was more than one chunk. Once high is infinite low is NaN and counts for nothing.
  Value* add_totals(Value* v, Value* high, Value* low, Value* last) {
    llvm::BasicBlock* before = b_.ir.GetInsertBlock();
    llvm::BasicBlock* add = e_.new_block("add_totals");
    llvm::BasicBlock* after = e_.new_block("after_totals");
    b_.ir.CreateCondBr(b_.ir.CreateICmpSGE(last, e_.i64(kChunkSteps * span_)), add, after);
    b_.ir.SetInsertPoint(add);
    Value* kept = b_.ir.CreateSelect(b_.ir.CreateFCmpORD(low, low), low, llvm::Constant::getNullValue(low->getType()));
    Value* total = b_.ir.CreateFAdd(high, b_.ir.CreateFAdd(kept, v));
    b_.ir.CreateBr(after);
    b_.ir.SetInsertPoint(after);
    llvm::PHINode* phi = b_.ir.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    phi->addIncoming(total, add);
    return phi;
  }

  Emission& e_;
  Builder& b_;
  const RowPlan plan_;
  std::vector<Value*> row_of_;  // per expression: where its values of this row are kept, null if they are not
  int64_t span_ = 0;            // elements of a full step
};

}  // namespace

void emit_rows(Emission& e) {
  FXJIT_CHECK(e.hooks.lanes() > 1, "rows are emitted for vectors only");
  RowEmitter(e).run();
}

}  // namespace fxjit::inline v0::codegen
