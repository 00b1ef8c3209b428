#include "kernel/lower/index.h"

#include "support/errors.h"

namespace fxjit::inline v0::kernel {

Coord origin(ShapeEnv& env) { return {env.constant(0), {}}; }

Coord along(ShapeEnv& env, int32_t axis) { return {env.constant(0), {{axis, env.constant(1)}}}; }

Coord add(ShapeEnv& env, const Coord& a, const Coord& b) {
  Coord out{env.add(a.constant, b.constant), a.terms};
  for (const Term& t : b.terms) {
    bool merged = false;
    for (Term& o : out.terms) {
      if (o.axis != t.axis) continue;
      o.coefficient = env.add(o.coefficient, t.coefficient);
      merged = true;
    }
    if (!merged) out.terms.push_back(t);
  }
  return out;
}

Coord scale(ShapeEnv& env, const Coord& a, Dim factor) {
  Coord out{env.mul(a.constant, factor), {}};
  if (env.is_const(factor, 0)) return out;
  for (const Term& t : a.terms) out.terms.push_back({t.axis, env.mul(t.coefficient, factor)});
  return out;
}

Index broadcast_index(ShapeEnv& env, std::span<const Dim> from, std::span<const Dim> to, const Index& index) {
  FXJIT_CHECK(from.size() <= to.size() && to.size() == index.size(),
              "an operand has no more dimensions than the result");
  const size_t lead = to.size() - from.size();
  Index out;
  for (size_t d = 0; d < from.size(); ++d) out.push_back(env.is_const(from[d], 1) ? origin(env) : index[lead + d]);
  return out;
}

namespace {

// Distributes a row-major position over dimensions of the given sizes.
class Splitter {
 public:
  Splitter(ShapeEnv& env, const Space& space, std::span<const Dim> sizes) : env_(env), space_(space), sizes_(sizes) {}

  // False where a term cannot be told to stay within one dimension.
  bool run(const Coord& linear, Index& out) {
    if (!env_.is_const(linear.constant, 0)) return false;
    std::vector<Dim> suffix(sizes_.size(), env_.constant(1));
    for (size_t d = sizes_.size() - 1; d-- > 0;) suffix[d] = env_.mul(suffix[d + 1], sizes_[d + 1]);
    const size_t first = out.size();
    for (size_t d = 0; d < sizes_.size(); ++d) out.push_back(origin(env_));
    for (const Term& t : linear.terms) {
      size_t d = dimension_of(t, suffix);
      if (d == sizes_.size()) return false;
      Coord& coord = out[first + d];
      if (!coord.terms.empty()) return false;
      coord.terms.push_back({t.axis, env_.constant(1)});
    }
    return true;
  }

 private:
  // The dimension that the axis runs through from end to end; sizes_.size() if there is none.
  size_t dimension_of(const Term& t, const std::vector<Dim>& suffix) const {
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (suffix[d] == t.coefficient && sizes_[d] == space_.extents[static_cast<size_t>(t.axis)]) return d;
    }
    return sizes_.size();
  }

  ShapeEnv& env_;
  const Space& space_;
  std::span<const Dim> sizes_;
};

// Sizes without those of the constant 1, and where they were.
struct Squeezed {
  std::vector<Dim> sizes;
  std::vector<size_t> places;
};

Squeezed squeeze(ShapeEnv& env, std::span<const Dim> sizes) {
  Squeezed s;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (env.is_const(sizes[d], 1)) continue;
    s.sizes.push_back(sizes[d]);
    s.places.push_back(d);
  }
  return s;
}

Coord linearise(ShapeEnv& env, std::span<const Dim> sizes, std::span<const Coord> coords) {
  Coord linear = origin(env);
  for (size_t d = 0; d < sizes.size(); ++d) linear = add(env, scale(env, linear, sizes[d]), coords[d]);
  return linear;
}

}  // namespace

std::optional<Index> reshape_index(ShapeEnv& env, const Space& space, std::span<const Dim> from,
                                   std::span<const Dim> to, const Index& index) {
  const Squeezed source = squeeze(env, from), target = squeeze(env, to);
  std::vector<Coord> coords;
  for (size_t p : target.places) coords.push_back(index[p]);
  Index squeezed;
  size_t i = 0, o = 0;
  // Blocks of dimensions whose products are equal are independent of each other.
  while (i < source.sizes.size() && o < target.sizes.size()) {
    const size_t i0 = i, o0 = o;
    Dim left = source.sizes[i++], right = target.sizes[o++];
    while (left != right) {
      const bool grow_left = env.hint(left) < env.hint(right);
      if (grow_left && i < source.sizes.size()) {
        left = env.mul(left, source.sizes[i++]);
      } else if (!grow_left && o < target.sizes.size()) {
        right = env.mul(right, target.sizes[o++]);
      } else {
        return std::nullopt;
      }
    }
    std::span<const Dim> block(source.sizes.data() + i0, i - i0);
    const Coord linear = linearise(env, {target.sizes.data() + o0, o - o0}, {coords.data() + o0, o - o0});
    if (block.size() == 1) {
      squeezed.push_back(linear);
    } else if (!Splitter(env, space, block).run(linear, squeezed)) {
      return std::nullopt;
    }
  }
  if (i != source.sizes.size() || o != target.sizes.size()) return std::nullopt;
  Index out(from.size(), origin(env));
  for (size_t d = 0; d < source.places.size(); ++d) out[source.places[d]] = squeezed[d];
  return out;
}

}  // namespace fxjit::inline v0::kernel
