// Elementwise kernels: units of one block each, a main loop of U vectors a step, a tail of single masked vectors.
#include "codegen/emission.h"

namespace fxjit::inline v0::codegen {

using llvm::Value;

namespace {

void emit_step(Emission& e, const Step& step, int vectors) {
  e.b.set_vectors(vectors);
  e.evaluate(Level::Element, &step);
  for (const kernel::Store& s : e.k.stores) e.store(s.buffer, e.values[s.expr], step);
}

// Elements [start, stop) of the last axis, at the outer index that was entered.
void emit_range(Emission& e, Value* start, Value* stop) {
  Builder& b = e.b;
  const int lanes = e.hooks.lanes();
  b.hoist_into(b.ir.GetInsertBlock());
  e.evaluate(Level::Unit, nullptr);
  if (lanes == 1) {
    Value* first = b.ir.CreateAdd(start, e.iteration.inner_begin);
    e.loop(
        first, b.ir.CreateSub(stop, e.i64(1)), e.iteration.inner_step, {},
        [&](Value* i, auto) { emit_step(e, Step{i}, 1); }, "element");
    return;
  }
  const int64_t span = int64_t{e.schedule.vectors} * lanes;
  Value* i = e.loop(
      start, b.ir.CreateSub(stop, e.i64(span)), e.i64(span), {},
      [&](Value* i, auto) { emit_step(e, Step{i}, e.schedule.vectors); }, "main");
  e.loop(
      i, b.ir.CreateSub(stop, e.i64(1)), e.i64(lanes), {},
      [&](Value* i, auto) { emit_step(e, e.partial_step(i, stop), 1); }, "tail");
}

}  // namespace

void emit_elementwise(Emission& e) {
  Builder& b = e.b;
  Value* n = e.inner_extent();
  Value* block = e.i64(e.schedule.block);
  auto end_of = [&](Value* end) { return b.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, n); };
  if (e.outer_axes() == 0 && e.hooks.consecutive_units()) {  // consecutive blocks are one range
    Value* start = b.ir.CreateMul(e.iteration.begin, block);
    emit_range(e, start, end_of(b.ir.CreateMul(e.iteration.end, block)));
  } else {
    Value* blocks = nullptr;
    if (e.outer_axes() > 0) blocks = e.hooks.launch_field(b.ir, *e.function, LaunchField::Blocks, 0);
    e.each_unit(
        blocks,
        [&](Value* number) {
          Value* start = b.ir.CreateMul(number, block);
          emit_range(e, start, end_of(b.ir.CreateAdd(start, block)));
        },
        "unit");
  }
  if (e.schedule.nontemporal) e.hooks.fence_nontemporal(b.ir);
  b.ir.CreateRetVoid();
}

}  // namespace fxjit::inline v0::codegen
