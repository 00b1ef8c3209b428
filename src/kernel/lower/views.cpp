// Views of view.def as maps from an index of the result to one of the operand.
#include <algorithm>

#include "kernel/lower/builder.h"
#include "ops/registry.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using support::concat;

namespace {

// A view being lowered: the operand, its type, and the result's index.
struct View {
  Builder& b;
  const Call& c;
  const TensorType& from;
  bool bad = false;

  int64_t rank() const { return static_cast<int64_t>(from.rank()); }
  ShapeEnv& env() { return b.env(); }

  int64_t integer(size_t i, std::string_view name) {
    const fx::Argument a = b.argument(c, i, name);
    if (!a.is_int()) bad = true;
    return bad ? 0 : a.as_int();
  }
  // A dimension of a tensor of `rank` dimensions.
  size_t dim(size_t i, std::string_view name, int64_t rank) { return wrap(integer(i, name), rank); }
  size_t wrap(int64_t d, int64_t rank) {
    if (d < 0) d += rank;
    if (d < 0 || d >= rank) bad = true;
    return bad ? 0 : static_cast<size_t>(d);
  }
  // A position that counts from the end where it is negative; guarded where the size is a symbol.
  Dim position(int64_t p, Dim size) {
    if (p >= 0) return env().constant(p);
    if (!env().guard_le(env().constant(-p), size)) bad = true;
    return env().add(size, env().constant(p));
  }
};

Index permute(View& v) {
  Index out(v.from.rank());
  const fx::Argument dims = v.b.argument(v.c, 1, "dims");
  if (!dims.is_aggregate() || dims.size() != v.from.rank()) {
    v.bad = true;
    return out;
  }
  for (size_t d = 0; d < out.size(); ++d) {
    if (!dims[d].is_int()) v.bad = true;
    if (v.bad) return out;
    out[v.wrap(dims[d].as_int(), v.rank())] = v.c.index[d];
  }
  return out;
}

Index transpose(View& v) {
  Index out = v.c.index;
  const bool by_dims = v.c.node->args().size() > 2;
  if (by_dims) {
    const size_t a = v.dim(1, "dim0", v.rank()), b = v.dim(2, "dim1", v.rank());
    if (!v.bad && v.rank() > 0) std::swap(out[a], out[b]);
  } else if (v.c.schema == "aten::numpy_T") {
    std::reverse(out.begin(), out.end());
  } else if (v.rank() >= 2) {
    std::swap(out[out.size() - 1], out[out.size() - 2]);
  }
  return out;
}

Index expand(View& v) { return broadcast_index(v.env(), v.from.sizes, v.c.type.sizes, v.c.index); }

Index reshape(View& v) {
  auto index = reshape_index(v.env(), v.b.space(), v.from.sizes, v.c.type.sizes, v.c.index);
  if (!index) v.bad = true;
  return index.value_or(Index());
}

Index unsqueeze(View& v) {
  Index out = v.c.index;
  const size_t d = v.dim(1, "dim", v.rank() + 1);
  if (!v.bad) out.erase(out.begin() + static_cast<std::ptrdiff_t>(d));
  return out;
}

// The dimensions that went are of one element; which they were does not matter for the others' order.
Index squeeze(View& v) { return reshape(v); }

Index select(View& v) {
  Index out = v.c.index;
  const size_t d = v.dim(1, "dim", v.rank());
  const int64_t at = v.integer(2, "index");
  if (v.bad) return out;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(d), Coord{v.position(at, v.from.sizes[d]), {}});
  return out;
}

// slice(self, dim=0, start=None, end=None, step=1) and narrow(self, dim, start, length).
Index slice(View& v) {
  Index out = v.c.index;
  const fx::Argument start = v.b.argument(v.c, 2, "start"), step = v.b.argument(v.c, 4, "step");
  const size_t d = v.c.node->args().size() > 1 ? v.dim(1, "dim", v.rank()) : 0;
  const bool narrow = v.c.schema == "aten::narrow";
  if (!(start.is_none() || start.is_int()) || !(narrow || step.is_none() || step.is_int())) v.bad = true;
  if (v.bad || v.env().is_const(v.c.type.sizes[d], 0)) return out;  // nothing is read of an empty slice
  Coord& coord = out[d];
  if (!narrow && step.is_int()) coord = scale(v.env(), coord, v.env().constant(step.as_int()));
  const int64_t first = start.is_int() ? start.as_int() : 0;
  // A start before the beginning is the beginning.
  const bool clamped = first < 0 && v.env().guard_lt(v.from.sizes[d], v.env().constant(-first));
  if (!clamped) coord.constant = v.env().add(coord.constant, v.position(first, v.from.sizes[d]));
  return out;
}

}  // namespace

int lower_view(Builder& b, const Call& c, uint16_t rule) {
  const Operand x = b.operand(b.argument(c, 0));
  if (b.failure()) return -1;
  View v{b, c, *x.node->tensor_type()};
  Index index;
  switch (static_cast<ops::ViewRule>(rule)) {
#define FXJIT_VIEW(rule, aten) \
  case ops::ViewRule::rule:    \
    index = rule(v);           \
    break;
#include "fxjit/ops/view.def"
  }
  if (v.bad) return b.fail(concat(c.schema, " is no affine map of this kernel's axes"));
  return b.value(x.node, index);
}

}  // namespace fxjit::inline v0::kernel
