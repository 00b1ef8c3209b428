// Layouts of views.
#include <algorithm>
#include <optional>

#include "ops/shape.h"
#include "support/errors.h"

namespace fxjit::inline v0::ops {

using support::concat;

namespace {

std::optional<size_t> wrap(int64_t d, size_t rank) {
  const int64_t r = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (d < -r || d >= r) return std::nullopt;
  return static_cast<size_t>(d < 0 ? d + r : d);
}

Failure out_of_range(int64_t d) { return {concat("dimension ", d, " is out of range")}; }

std::ptrdiff_t at(size_t i) { return static_cast<std::ptrdiff_t>(i); }

}  // namespace

Result<Layout> permute(ShapeEnv&, const Layout& t, std::span<const int64_t> dims) {
  if (dims.size() != t.sizes.size()) return Failure{"permute takes every dimension once"};
  Layout out;
  std::vector<bool> seen(dims.size());
  for (int64_t dim : dims) {
    auto d = wrap(dim, dims.size());
    if (!d) return out_of_range(dim);
    if (seen[*d]) return Failure{"permute takes every dimension once"};
    seen[*d] = true;
    out.sizes.push_back(t.sizes[*d]);
    out.strides.push_back(t.strides[*d]);
  }
  return out;
}

Result<Layout> transpose(ShapeEnv&, const Layout& t, int64_t a, int64_t b) {
  auto x = wrap(a, t.sizes.size()), y = wrap(b, t.sizes.size());
  if (!x || !y) return out_of_range(x ? b : a);
  Layout out = t;
  if (t.sizes.empty()) return out;
  std::swap(out.sizes[*x], out.sizes[*y]);
  std::swap(out.strides[*x], out.strides[*y]);
  return out;
}

Result<Layout> expand(ShapeEnv& env, const Layout& t, const Dims& sizes) {
  if (sizes.size() < t.sizes.size()) return Failure{"expand takes at least as many sizes as there are dimensions"};
  const size_t lead = sizes.size() - t.sizes.size();
  Layout out;
  if (t.sizes.empty()) return Layout{sizes, Dims(sizes.size(), env.constant(0))};
  // ATen gives a new dimension of one element the stride of a contiguous one; others have stride 0.
  for (size_t i = sizes.size(); i-- > 0;) {
    const bool fresh = i < lead;
    const Dim size = fresh ? env.constant(1) : t.sizes[i - lead];
    const Dim inner = out.sizes.empty() ? env.constant(1) : env.mul(out.sizes.front(), out.strides.front());
    Dim stride = fresh ? inner : t.strides[i - lead];
    Dim wanted = sizes[i];
    if (wanted.id == -1 || env.is_const(wanted, -1)) wanted = size;
    if (wanted != size) {
      if (env.is_const(size, 1)) {
        stride = env.constant(0);
      } else if (!env.guard_eq(wanted, size)) {
        return Failure{concat("a size of ", env.to_string(size), " does not expand to ", env.to_string(wanted))};
      }
    }
    out.sizes.insert(out.sizes.begin(), wanted);
    out.strides.insert(out.strides.begin(), stride);
  }
  return out;
}

Result<Layout> unsqueeze(ShapeEnv& env, const Layout& t, int64_t dim) {
  auto d = wrap(dim, t.sizes.size() + 1);
  if (!d) return out_of_range(dim);
  const Dim stride = *d == t.sizes.size() ? env.constant(1) : env.mul(t.sizes[*d], t.strides[*d]);
  Layout out = t;
  out.sizes.insert(out.sizes.begin() + at(*d), env.constant(1));
  out.strides.insert(out.strides.begin() + at(*d), stride);
  return out;
}

Result<Layout> squeeze(ShapeEnv& env, const Layout& t, std::span<const int64_t> dims) {
  std::vector<bool> chosen(t.sizes.size(), dims.empty());
  for (int64_t dim : dims) {
    auto d = wrap(dim, t.sizes.size());
    if (!d) return out_of_range(dim);
    if (!chosen.empty()) chosen[*d] = true;
  }
  Layout out;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (chosen[d] && env.is_const(t.sizes[d], 1)) continue;
    out.sizes.push_back(t.sizes[d]);
    out.strides.push_back(t.strides[d]);
  }
  return out;
}

Result<Layout> select(ShapeEnv&, const Layout& t, int64_t dim) {
  auto d = wrap(dim, t.sizes.size());
  if (!d || t.sizes.empty()) return out_of_range(dim);
  Layout out = t;
  out.sizes.erase(out.sizes.begin() + at(*d));
  out.strides.erase(out.strides.begin() + at(*d));
  return out;
}

Result<Layout> slice(ShapeEnv& env, const Layout& t, int64_t dim, int64_t start, int64_t end, int64_t step) {
  auto d = wrap(dim, t.sizes.size());
  if (!d || t.sizes.empty()) return out_of_range(dim);
  if (step <= 0) return Failure{"a step of a slice is positive"};
  const Dim size = t.sizes[*d];
  const Dim zero = env.constant(0);
  // Both ends count from the end where negative, and are moved into [0, size].
  auto place = [&](int64_t p) {
    if (p >= 0) return env.guard_le(env.constant(p), size) ? env.constant(p) : size;
    return env.guard_le(env.constant(-p), size) ? env.add(size, env.constant(p)) : zero;
  };
  const Dim first = place(start);
  Dim last = end == INT64_MAX ? size : place(end);
  if (env.guard_lt(last, first)) last = first;
  Layout out = t;
  const Dim length = env.add(last, env.mul(first, env.constant(-1)));
  out.sizes[*d] = step == 1 ? length : env.floordiv(env.add(length, env.constant(step - 1)), env.constant(step));
  if (last == first) out.sizes[*d] = zero;
  // A length of 0 or 1 is a constant, like the sizes of inputs.
  if (!env.is_const(out.sizes[*d]) && env.hint(out.sizes[*d]) < 2) {
    const Dim value = env.constant(env.hint(out.sizes[*d]));
    env.guard_eq(out.sizes[*d], value);
    out.sizes[*d] = value;
  }
  out.strides[*d] = env.mul(t.strides[*d], env.constant(step));
  return out;
}

namespace {

// The quotient of two products, with equal factors struck out so that s0 * s1 / s0 is s1 itself.
Dim quotient(ShapeEnv& env, Dims numerator, const Dims& denominator) {
  Dim rest = env.constant(1);
  for (Dim d : denominator) {
    auto it = std::find(numerator.begin(), numerator.end(), d);
    if (it != numerator.end()) {
      numerator.erase(it);
    } else {
      rest = env.mul(rest, d);
    }
  }
  Dim scale = env.constant(1), symbols = env.constant(1);
  for (Dim d : numerator) (env.is_const(d) ? scale : symbols) = env.mul(env.is_const(d) ? scale : symbols, d);
  if (env.is_const(rest) && env.hint(scale) % env.hint(rest) == 0) {
    return env.mul(symbols, env.constant(env.hint(scale) / env.hint(rest)));
  }
  return env.floordiv(env.mul(scale, symbols), rest);
}

}  // namespace

Result<Dims> infer_view_sizes(ShapeEnv& env, const Dims& from, const Dims& sizes) {
  Dims out = sizes, given;
  size_t open = sizes.size();
  Dim known = env.constant(1);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!env.is_const(sizes[d], -1)) {
      known = env.mul(known, sizes[d]);
      given.push_back(sizes[d]);
    } else if (open == sizes.size()) {
      open = d;
    } else {
      return Failure{"only one size can be inferred"};
    }
  }
  const Dim total = env.product(from);
  if (open < sizes.size()) {
    if (env.is_const(known, 0)) return Failure{"a size of a tensor without elements cannot be inferred"};
    if (env.hint(known) == 0 || env.hint(total) % env.hint(known) != 0) return Failure{"the sizes do not fit"};
    out[open] = quotient(env, from, given);
    known = env.mul(known, out[open]);
  }
  if (!env.guard_eq(total, known)) return Failure{"the sizes do not fit"};
  return out;
}

namespace {

// ATen's computeStride: runs of dimensions of the old layout that lie without a gap are cut into the new sizes.
class ViewStrides {
 public:
  ViewStrides(ShapeEnv& env, const Layout& t, const Dims& sizes)
      : env_(env), t_(t), sizes_(sizes), out_(sizes.size()) {}

  std::optional<Dims> run() {
    size_t next = sizes_.size();  // new dimensions below are done
    Dim run_stride = t_.strides.back(), run_size = env_.constant(1);
    for (size_t d = t_.sizes.size(); d-- > 0;) {
      run_size = env_.mul(run_size, t_.sizes[d]);
      const bool goes_on = d > 0 && (env_.is_const(t_.sizes[d - 1], 1) ||
                                     env_.guard_eq(t_.strides[d - 1], env_.mul(run_size, run_stride)));
      if (goes_on) continue;
      if (!cut(next, run_size, run_stride)) return std::nullopt;
      if (d > 0) {
        run_stride = t_.strides[d - 1];
        run_size = env_.constant(1);
      }
    }
    return next == 0 ? std::optional(out_) : std::nullopt;
  }

 private:
  bool cut(size_t& next, Dim run_size, Dim run_stride) {
    Dim taken = env_.constant(1);
    while (next > 0 && (env_.guard_lt(taken, run_size) || env_.is_const(sizes_[next - 1], 1))) {
      out_[next - 1] = env_.mul(taken, run_stride);
      taken = env_.mul(taken, sizes_[next - 1]);
      --next;
    }
    return env_.guard_eq(taken, run_size);
  }

  ShapeEnv& env_;
  const Layout& t_;
  const Dims& sizes_;
  Dims out_;
};

}  // namespace

Result<Layout> view(ShapeEnv& env, const Layout& t, const Dims& sizes) {
  Result<Dims> full = infer_view_sizes(env, t.sizes, sizes);
  if (!full) return full.failure();
  Layout out{std::move(*full), {}};
  if (t.sizes == out.sizes) {
    out.strides = t.strides;
  } else if (std::any_of(t.sizes.begin(), t.sizes.end(), [&](Dim d) { return env.is_const(d, 0); }) ||
             t.sizes.empty()) {
    out.strides = contiguous_strides(env, out.sizes);
  } else {
    auto strides = ViewStrides(env, t, out.sizes).run();
    if (!strides) return Failure{"the memory does not allow a view of these sizes"};
    out.strides = std::move(*strides);
  }
  return out;
}

}  // namespace fxjit::inline v0::ops
