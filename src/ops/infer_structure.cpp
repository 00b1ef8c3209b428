// Types of reductions, views and library calls.
#include <algorithm>

#include "ops/infer_context.h"
#include "support/errors.h"

namespace fxjit::inline v0::ops {

using support::concat;

namespace {

// (self), (self, dtype), (self, dims, keepdim) or (self, dims, keepdim, dtype)
struct ReduceArguments {
  std::vector<bool> reduced;
  bool keepdim = false;
  fx::Argument dtype;
};

Result<ReduceArguments> reduce_arguments(const Inference& c, size_t rank) {
  ReduceArguments out;
  out.reduced.assign(rank, false);
  const bool by_dim = c.schema.find(".dim") != c.schema.npos || c.schema == "aten::amax" || c.schema == "aten::amin";
  out.dtype = c.argument(by_dim ? 3 : 1);
  if (!by_dim) {
    out.reduced.assign(rank, true);
    return out;
  }
  const Result<std::vector<int64_t>> dims = integers(c.argument(1));
  if (!dims) return dims.failure();
  if (dims->empty()) out.reduced.assign(rank, true);
  const int64_t r = static_cast<int64_t>(std::max<size_t>(rank, 1));
  for (int64_t d : *dims) {
    if (d < -r || d >= r) return Failure{concat(c.schema, ": dimension ", d, " is out of range")};
    if (rank > 0) out.reduced[static_cast<size_t>(d < 0 ? d + r : d)] = true;
  }
  const fx::Argument keepdim = c.argument(2);
  out.keepdim = keepdim.is_bool() && keepdim.as_bool();
  return out;
}

DType reduced_dtype(ReduceId id, DType self, const fx::Argument& dtype) {
  switch (id) {
    case ReduceId::sum:
    case ReduceId::prod:
      if (dtype.is(fx::Argument::Kind::DType)) return dtype.as_dtype();
      return is_floating(self) || kind_of(self) == 'c' ? self : DType::Int64;
    case ReduceId::mean:
      return dtype.is(fx::Argument::Kind::DType) ? dtype.as_dtype() : self;
    case ReduceId::amax:
    case ReduceId::amin:
      return self;
    case ReduceId::any:
    case ReduceId::all:
      return self == DType::UInt8 ? self : DType::Bool;
  }
  FXJIT_UNREACHABLE("a row of reduce.def");
}

}  // namespace

TypeResult infer_reduce(const Inference& c, ReduceId id) {
  const TensorType* x = c.tensor(0);
  if (x == nullptr) return Failure{concat(c.schema, ": self is no tensor")};
  const Result<ReduceArguments> a = reduce_arguments(c, x->rank());
  if (!a) return a.failure();
  const DType dtype = reduced_dtype(id, x->dtype, a->dtype);
  if (id == ReduceId::mean && !is_floating(dtype)) return Failure{concat(c.schema, " of integers")};
  Dims sizes = reduced_sizes(c.env, x->sizes, a->reduced, a->keepdim);
  Dims strides = contiguous_strides(c.env, sizes);
  return make_type(c, std::move(sizes), std::move(strides), dtype);
}

namespace {

TypeResult with_layout(const Inference& c, const Result<Layout>& layout) {
  if (!layout) return Failure{concat(c.schema, ": ", layout.reason())};
  return make_type(c, layout->sizes, layout->strides, c.tensor(0)->dtype);
}

Result<int64_t> integer(const Inference& c, size_t i) {
  const fx::Argument a = c.argument(i);
  if (!a.is_int()) return Failure{concat(c.schema, ": argument ", i, " is no integer")};
  return a.as_int();
}

// Sizes given as integers; negative ones stay as they are.
Result<Dims> sizes_argument(const Inference& c, size_t i) {
  const Result<std::vector<int64_t>> values = integers(c.argument(i));
  if (!values) return values.failure();
  Dims out;
  for (int64_t v : *values) out.push_back(c.env.constant(v));
  return out;
}

TypeResult infer_permute(const Inference& c, const Layout& x) {
  const Result<std::vector<int64_t>> dims = integers(c.argument(1));
  if (!dims) return dims.failure();
  return with_layout(c, permute(c.env, x, *dims));
}

TypeResult infer_transpose(const Inference& c, const Layout& x) {
  const size_t rank = x.sizes.size();
  if (c.node.args().size() > 2) {
    const Result<int64_t> a = integer(c, 1), b = integer(c, 2);
    if (!a || !b) return (a ? b : a).failure();
    return with_layout(c, transpose(c.env, x, *a, *b));
  }
  if (c.schema == "aten::numpy_T") {
    Layout out = x;
    std::reverse(out.sizes.begin(), out.sizes.end());
    std::reverse(out.strides.begin(), out.strides.end());
    return with_layout(c, out);
  }
  return rank < 2 ? with_layout(c, x) : with_layout(c, transpose(c.env, x, -1, -2));
}

TypeResult infer_expand(const Inference& c, const Layout& x) {
  if (c.schema == "aten::expand_as") {
    const TensorType* other = c.tensor(1);
    if (other == nullptr) return Failure{concat(c.schema, ": other is no tensor")};
    return with_layout(c, expand(c.env, x, other->sizes));
  }
  const Result<Dims> sizes = sizes_argument(c, 1);
  return sizes ? with_layout(c, expand(c.env, x, *sizes)) : TypeResult(sizes.failure());
}

// flatten(self, start_dim=0, end_dim=-1)
Result<Dims> flattened(const Inference& c, const Layout& x) {
  const Result<int64_t> start = integer(c, 1), end = integer(c, 2);
  if (!start || !end) return (start ? end : start).failure();
  const int64_t rank = static_cast<int64_t>(x.sizes.size());
  const int64_t a = *start < 0 ? *start + rank : *start, b = *end < 0 ? *end + rank : *end;
  if (rank == 0) return Dims{c.env.constant(1)};
  if (a < 0 || b < a || b >= rank) return Failure{"dimensions are out of range"};
  Dims out(x.sizes.begin(), x.sizes.begin() + a);
  out.push_back(c.env.product({x.sizes.data() + a, static_cast<size_t>(b - a + 1)}));
  out.insert(out.end(), x.sizes.begin() + b + 1, x.sizes.end());
  return out;
}

Result<Dims> unflattened(const Inference& c, const Layout& x) {
  const Result<int64_t> dim = integer(c, 1);
  const Result<Dims> parts = sizes_argument(c, 2);
  if (!dim || !parts) return dim ? parts.failure() : dim.failure();
  const int64_t rank = static_cast<int64_t>(x.sizes.size());
  const int64_t d = *dim < 0 ? *dim + rank : *dim;
  if (d < 0 || d >= rank) return Failure{"the dimension is out of range"};
  const Result<Dims> full = infer_view_sizes(c.env, {x.sizes[static_cast<size_t>(d)]}, *parts);
  if (!full) return full.failure();
  Dims out(x.sizes.begin(), x.sizes.begin() + d);
  out.insert(out.end(), full->begin(), full->end());
  out.insert(out.end(), x.sizes.begin() + d + 1, x.sizes.end());
  return out;
}

Result<Dims> reshaped_sizes(const Inference& c, const Layout& x) {
  if (c.schema == "aten::flatten.using_ints") return flattened(c, x);
  if (c.schema == "aten::unflatten.int") return unflattened(c, x);
  if (c.schema == "aten::ravel") return Dims{c.env.product(x.sizes)};
  if (c.schema == "aten::view_as" || c.schema == "aten::reshape_as") {
    const TensorType* other = c.tensor(1);
    if (other == nullptr) return Failure{"other is no tensor"};
    return other->sizes;
  }
  return sizes_argument(c, 1);
}

// Where memory does not allow the view, all but the view operators themselves make a contiguous copy.
TypeResult infer_reshape(const Inference& c, const Layout& x) {
  const Result<Dims> sizes = reshaped_sizes(c, x);
  if (!sizes) return Failure{concat(c.schema, ": ", sizes.reason())};
  const Result<Layout> layout = view(c.env, x, *sizes);
  const bool only_view = c.schema == "aten::view" || c.schema == "aten::view_as" || c.schema == "aten::_unsafe_view";
  if (layout || only_view) return with_layout(c, layout);
  const Result<Dims> full = infer_view_sizes(c.env, x.sizes, *sizes);
  if (!full) return full.failure();
  return with_layout(c, Layout{*full, contiguous_strides(c.env, *full)});
}

TypeResult infer_unsqueeze(const Inference& c, const Layout& x) {
  const Result<int64_t> dim = integer(c, 1);
  return dim ? with_layout(c, unsqueeze(c.env, x, *dim)) : TypeResult(dim.failure());
}

TypeResult infer_squeeze(const Inference& c, const Layout& x) {
  const Result<std::vector<int64_t>> dims = integers(c.argument(1));
  if (!dims) return dims.failure();
  if (dims->empty() && c.node.args().size() > 1) return with_layout(c, x);  // of no dimension
  return with_layout(c, squeeze(c.env, x, *dims));
}

TypeResult infer_select(const Inference& c, const Layout& x) {
  const Result<int64_t> dim = integer(c, 1);
  return dim ? with_layout(c, select(c.env, x, *dim)) : TypeResult(dim.failure());
}

// slice.Tensor(self, dim=0, start=None, end=None, step=1); narrow(self, dim, start, length)
TypeResult infer_slice(const Inference& c, const Layout& x) {
  auto given = [&](size_t i, int64_t otherwise) -> Result<int64_t> {
    return c.argument(i).is_none() ? Result<int64_t>(otherwise) : integer(c, i);
  };
  const Result<int64_t> dim = given(1, 0), start = given(2, 0), third = given(3, INT64_MAX), step = given(4, 1);
  for (const Result<int64_t>* r : {&dim, &start, &third, &step}) {
    if (!*r) return r->failure();
  }
  if (c.schema != "aten::narrow") return with_layout(c, slice(c.env, x, *dim, *start, *third, *step));
  if (*start < 0) return Failure{"a start that counts from the end"};
  return with_layout(c, slice(c.env, x, *dim, *start, *start + *third, 1));
}

}  // namespace

TypeResult infer_view(const Inference& c, ViewRule rule) {
  if (c.tensor(0) == nullptr) return Failure{concat(c.schema, ": self is no tensor")};
  const Layout x = layout_of(*c.tensor(0));
  switch (rule) {
#define FXJIT_VIEW(rule, aten) \
  case ViewRule::rule:         \
    return infer_##rule(c, x);
#include "fxjit/ops/view.def"
  }
  FXJIT_UNREACHABLE("a rule of view.def");
}

// linear(input, weight, bias): rows of the last dimension become rows of the weight's first.
TypeResult infer_library(const Inference& c, LibraryId id) {
  switch (id) {
    case LibraryId::linear: {
      const TensorType *x = c.tensor(0), *w = c.tensor(1);
      if (x == nullptr || w == nullptr || w->rank() != 2 || x->rank() < 2) return Failure{"linear without rows"};
      if (x->dtype != w->dtype || !c.env.guard_eq(x->sizes.back(), w->sizes[1]))
        return Failure{"linear of other sizes"};
      Dims sizes = x->sizes;
      sizes.back() = w->sizes[0];
      Dims strides = contiguous_strides(c.env, sizes);
      return make_type(c, std::move(sizes), std::move(strides), x->dtype);
    }
  }
  FXJIT_UNREACHABLE("a row of library.def");
}

}  // namespace fxjit::inline v0::ops
