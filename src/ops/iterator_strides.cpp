// The layout rule of ATen's TensorIterator, step by step.
#include <algorithm>
#include <optional>

#include "ops/shape.h"

namespace fxjit::inline v0::ops {
namespace {

Dims contiguous(ShapeEnv& env, const Dims& shape) { return contiguous_strides(env, shape); }

bool is_contiguous_layout(ShapeEnv& env, const Layout& t) {
  TensorType type;
  type.sizes = t.sizes;
  type.strides = t.strides;
  return is_contiguous(env, type);
}

Dims channels_last_strides(ShapeEnv& env, const Dims& shape) {
  Dims out(4);
  Dim next = env.constant(1);
  for (size_t d : {size_t{1}, size_t{3}, size_t{2}, size_t{0}}) {
    out[d] = next;
    // As in ATen, sizes below 1 do not count.
    if (!env.is_const(shape[d], 0)) next = env.mul(next, shape[d]);
  }
  return out;
}

bool all_of_one_shape(std::span<const Layout> operands) {
  return std::all_of(operands.begin(), operands.end(), [&](const Layout& o) { return o.sizes == operands[0].sizes; });
}

std::optional<Dims> fast_set_up(ShapeEnv& env, const Dims& shape, std::span<const Layout> operands) {
  if (!all_of_one_shape(operands)) return std::nullopt;
  auto all = [&](auto&& predicate) { return std::all_of(operands.begin(), operands.end(), predicate); };
  if (all([&](const Layout& o) { return is_contiguous_layout(env, o); })) return contiguous(env, shape);
  if (all([&](const Layout& o) { return is_channels_last(env, o); })) return channels_last_strides(env, shape);
  if (!all([&](const Layout& o) { return is_dense(env, o); })) return std::nullopt;
  if (!all([&](const Layout& o) { return o.strides == operands[0].strides; })) return std::nullopt;
  return operands[0].strides;
}

class Order {
 public:
  Order(ShapeEnv& env, const Dims& shape, std::span<const Layout> operands) : env_(env), shape_(shape) {
    for (const Layout& o : operands) strides_.push_back(broadcast_strides(o));
  }

  // Dimensions from the fastest to the slowest: an insertion sort in which a tie leaves the neighbours as they are
  // and goes on comparing farther down.
  std::vector<size_t> run() {
    std::vector<size_t> perm(shape_.size());
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = perm.size() - 1 - i;
    for (size_t i = 1; i < perm.size(); ++i) {
      size_t high = i;
      for (size_t low = i; low-- > 0;) {
        const int comparison = compare(perm[low], perm[high]);
        if (comparison < 0) break;
        if (comparison == 0) continue;
        std::swap(perm[low], perm[high]);
        high = low;
      }
    }
    return perm;
  }

 private:
  Dims broadcast_strides(const Layout& o) {
    Dims out(shape_.size(), env_.constant(0));
    const size_t lead = shape_.size() - o.sizes.size();
    for (size_t d = 0; d < o.sizes.size(); ++d) {
      const bool repeated = env_.is_const(o.sizes[d], 1) && !env_.is_const(shape_[lead + d], 1);
      if (!repeated) out[lead + d] = o.strides[d];
    }
    return out;
  }

  // 1 where dimension `a`, now the faster one, is to be the slower one; -1 where not; 0 where no operand says.
  int compare(size_t a, size_t b) {
    for (const Dims& s : strides_) {
      if (env_.is_const(s[a], 0) || env_.is_const(s[b], 0)) continue;
      if (env_.guard_lt(s[a], s[b])) return -1;
      if (env_.guard_lt(s[b], s[a])) return 1;
      if (env_.guard_lt(shape_[b], shape_[a])) return 1;
    }
    return 0;
  }

  ShapeEnv& env_;
  const Dims& shape_;
  std::vector<Dims> strides_;
};

bool is_reversed(const std::vector<size_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != perm.size() - 1 - i) return false;
  }
  return true;
}

Dims ordered_strides(ShapeEnv& env, const Dims& shape, std::span<const Layout> operands) {
  const std::vector<size_t> perm = Order(env, shape, operands).run();
  if (is_reversed(perm)) return contiguous(env, shape);
  Dims out(shape.size());
  Dim next = env.constant(1);
  for (size_t d : perm) {
    out[d] = next;
    next = env.mul(next, shape[d]);
  }
  return out;
}

}  // namespace

Dims iterator_strides(ShapeEnv& env, const Dims& shape, std::span<const Layout> operands) {
  if (auto fast = fast_set_up(env, shape, operands)) return *fast;
  return ordered_strides(env, shape, operands);
}

Dims preserved_strides(ShapeEnv& env, const Layout& t) {
  if (is_dense(env, t)) return t.strides;
  return ordered_strides(env, t.sizes, {&t, 1});
}

}  // namespace fxjit::inline v0::ops
