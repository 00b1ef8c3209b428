// Broadcasting and reduced shapes, and the predicates on layouts.
#include "ops/shape.h"

#include <algorithm>

#include "support/errors.h"

namespace fxjit::inline v0::ops {

using support::concat;

Layout layout_of(const TensorType& t) { return {t.sizes, t.strides}; }

Result<Dims> broadcast(ShapeEnv& env, std::span<const Dims* const> shapes) {
  size_t rank = 0;
  for (const Dims* s : shapes) rank = std::max(rank, s->size());
  Dims out(rank, env.constant(1));
  for (const Dims* s : shapes) {
    const size_t lead = rank - s->size();
    for (size_t d = 0; d < s->size(); ++d) {
      const Dim size = (*s)[d];
      Dim& o = out[lead + d];
      if (o == size || env.is_const(size, 1)) continue;
      if (env.is_const(o, 1)) {
        o = size;
      } else if (!env.guard_eq(o, size)) {
        return Failure{concat("sizes ", env.to_string(o), " and ", env.to_string(size), " do not broadcast")};
      } else if (env.is_const(size)) {
        o = size;
      }
    }
  }
  return out;
}

namespace {

bool has_no_elements(const ShapeEnv& env, const Dims& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [&](Dim d) { return env.is_const(d, 0); });
}

}  // namespace

bool is_channels_last(ShapeEnv& env, const Layout& t) {
  if (t.sizes.size() != 4) return false;
  Dim expected = env.constant(1);
  for (size_t d : {size_t{1}, size_t{3}, size_t{2}, size_t{0}}) {
    if (env.is_const(t.sizes[d], 1)) continue;
    if (t.strides[d] != expected) return false;
    expected = env.mul(expected, t.sizes[d]);
  }
  return true;
}

bool is_dense(ShapeEnv& env, const Layout& t) {
  if (t.sizes.size() == 1)
    return env.is_const(t.sizes[0], 0) || env.is_const(t.sizes[0], 1) || env.is_const(t.strides[0], 1);
  std::vector<size_t> order;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (!env.is_const(t.sizes[d], 1) && !env.is_const(t.sizes[d], 0)) order.push_back(d);
  }
  // Dense dimensions have distinct strides, each the product of those below: the order by hints finds the chain, and
  // the chain is then compared by form.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(env.hint(t.strides[a]), a) < std::pair(env.hint(t.strides[b]), b);
  });
  Dim expected = env.constant(1);
  for (size_t d : order) {
    if (t.strides[d] != expected) return false;
    expected = env.mul(expected, t.sizes[d]);
  }
  return !has_no_elements(env, t.sizes) || order.size() + 1 >= t.sizes.size();
}

Dims reduced_sizes(ShapeEnv& env, const Dims& sizes, const std::vector<bool>& reduced, bool keepdim) {
  Dims out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!reduced[d]) out.push_back(sizes[d]);
    if (reduced[d] && keepdim) out.push_back(env.constant(1));
  }
  return out;
}

}  // namespace fxjit::inline v0::ops
