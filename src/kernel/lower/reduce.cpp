// Reductions: the operand is read along the whole row, the result at the row's own place.
#include "kernel/lower/builder.h"
#include "kernel/lower/space.h"
#include "ops/registry.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using support::concat;

namespace {

struct ReduceRow {
  ReduceOp op;
  ops::Widen widen;
  bool mean;
};

ReduceRow row_of(ops::ReduceId id) {
  switch (id) {
#define FXJIT_REDUCE(name, op, widen, aten) \
  case ops::ReduceId::name:                 \
    return {ReduceOp::op, ops::Widen::widen, ops::ReduceId::name == ops::ReduceId::mean};
#include "fxjit/ops/reduce.def"
  }
  FXJIT_UNREACHABLE("a row of reduce.def");
}

// The index of the whole row in the operand, if the call's index is the row's place; empty otherwise.
std::optional<Index> row_index(Builder& b, const Call& c, const TensorType& x, const ReducedDims& dims) {
  Index out;
  int32_t axis = 0;
  size_t d_out = 0;
  const Space& space = b.space();
  for (size_t d = 0; d < x.rank(); ++d) {
    const bool reduced = dims.reduced[d];
    const bool kept = !reduced || dims.keepdim;
    const Coord* place = kept ? &c.index[d_out++] : nullptr;
    if (b.env().is_const(x.sizes[d], 1)) {
      out.push_back(origin(b.env()));
      continue;
    }
    const size_t a = static_cast<size_t>(axis);
    if (a >= space.extents.size() || space.extents[a] != x.sizes[d] || space.reduced[a] != reduced) return {};
    out.push_back(along(b.env(), axis));
    if (!reduced && *place != out.back()) return {};
    ++axis;
  }
  if (static_cast<size_t>(axis) != space.extents.size()) return {};
  return out;
}

}  // namespace

int lower_reduce(Builder& b, const Call& c, uint16_t id) {
  const Result<ReducedDims> dims = reduced_dims(*c.node);
  if (!dims) return b.fail(dims.reason());
  fx::Node* node = c.node->arg(0).as_node();
  const TensorType& type = *node->tensor_type();
  const std::optional<Index> index = row_index(b, c, type, *dims);
  if (!index) return b.fail(concat(c.schema, " is over another space than the rest, or read at other places"));
  ReduceRow row = row_of(static_cast<ops::ReduceId>(id));
  const DType result = c.type.dtype;
  if (row.widen == ops::Widen::Boolean && result != DType::Bool) return b.fail(concat(c.schema, " of uint8"));
  if (row.widen == ops::Widen::Integers && !is_floating(result) && result != DType::Int64) {
    return b.fail(concat(c.schema, " to a narrow integer"));
  }
  if (row.mean && !is_floating(result)) return b.fail(concat(c.schema, " of integers"));
  if (result == DType::Bool && row.op == ReduceOp::Max) row.op = ReduceOp::Any;
  if (result == DType::Bool && row.op == ReduceOp::Min) row.op = ReduceOp::All;
  // Eager casts to the result's type first, and half types accumulate in float32.
  const DType wide = compute_type(result);
  const int x = b.cast(b.cast(b.value(node, *index), result), wide);
  int value = b.reduce(row.op, x);
  if (row.mean) value = b.op(ops::OpId::div, {value, b.extent(wide)});
  return b.cast(value, result);
}

}  // namespace fxjit::inline v0::kernel
