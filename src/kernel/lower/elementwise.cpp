// Rows of elementwise.def whose operands are the schema's arguments.
#include "kernel/lower/rules.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using ops::OpId;
using ops::Promote;

namespace {

// Bool has no arithmetic of its own: eager's sum is an or, its product an and.
std::optional<OpId> row_on_bool(OpId id) {
  if (id == OpId::add || id == OpId::maximum) return OpId::logical_or;
  if (id == OpId::mul || id == OpId::minimum) return OpId::logical_and;
  return std::nullopt;
}

bool rounds_to_integer(OpId id) {
  return id == OpId::floor || id == OpId::ceil || id == OpId::trunc || id == OpId::round;
}

// Where the second operand is a single number, eager multiplies and divides half types by it unrounded; every other
// row, addition included, rounds it to the half type first.
bool takes_wide_number(OpId id) { return id == OpId::mul || id == OpId::div || id == OpId::div_trunc; }

bool is_single_number(const Operand& o) { return o.is_number() || o.node->tensor_type()->rank() == 0; }

int apply_row(Builder& b, const Call& c, OpId id, std::span<const Operand> xs, DType t) {
  switch (xs.size()) {
    case 1:
      return b.op(id, {b.element(c, xs[0], t)});
    case 2:
      return b.op(id, {b.element(c, xs[0], t), b.element(c, xs[1], t)});
    default:
      return b.op(id, {b.element(c, xs[0], t), b.element(c, xs[1], t), b.element(c, xs[2], t)});
  }
}

int lower_where(Builder& b, const Call& c, std::span<const Operand> xs, const ops::Promoted& p) {
  if (xs[0].dtype != DType::Bool) return b.fail(support::concat(c.schema, ": the condition is not bool"));
  auto branch = [&](const Operand& o) {
    return o.is_number() ? b.parameter(c, o, p.compute) : b.element(c, o, p.compute);
  };
  return b.op(OpId::where, {b.element(c, xs[0], DType::Bool), branch(xs[1]), branch(xs[2])});
}

}  // namespace

int lower_row(Builder& b, const Call& c, OpId id, std::span<const Operand> xs) {
  const ops::OpRow& row = ops::row(id);
  if (b.failure()) return -1;
  std::vector<ops::OperandType> types;
  const size_t first = row.promote == Promote::Where ? 1 : 0;
  for (size_t i = first; i < xs.size(); ++i) types.push_back(b.operand_type(xs[i]));
  const ops::Promoted p = ops::promote(row.promote, types, b.options().default_float);
  const DType t = p.compute;
  if (row.promote == Promote::Where) return lower_where(b, c, xs, p);
  if (row.promote == Promote::Logical) return apply_row(b, c, id, xs, DType::Bool);
  if (row.promote == Promote::Predicate && !is_floating(t)) return b.constant(DType::Bool, 0);
  if (rounds_to_integer(id) && is_integral(t)) return b.element(c, xs[0], t);
  if (t == DType::Bool) {
    if (row.promote == Promote::Compare) return apply_row(b, c, id, xs, DType::UInt8);
    if (auto other = row_on_bool(id)) return apply_row(b, c, *other, xs, t);
  }
  if (is_half(t) && takes_wide_number(id) && is_single_number(xs[1])) {
    const int x = b.cast(b.element(c, xs[0], t), DType::Float32);
    return b.cast(b.op(id, {x, b.element(c, xs[1], DType::Float32)}), t);
  }
  return apply_row(b, c, id, xs, t);
}

int lower_elementwise(Builder& b, const Call& c, const ops::OpRow& row) {
  std::vector<Operand> xs;
  for (size_t i = 0; i < row.arity; ++i) xs.push_back(b.operand(b.argument(c, i)));
  return lower_row(b, c, row.id, xs);
}

}  // namespace fxjit::inline v0::kernel
