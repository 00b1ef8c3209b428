// Where in a tensor an expression reads: one affine form per dimension over the axes of the iteration space.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fxjit/sym.h"

namespace fxjit::inline v0::kernel {

struct Term {
  int32_t axis;
  Dim coefficient;
  bool operator==(const Term&) const = default;
};

// constant + the sum of coefficient * axis. Axes of one element do not occur.
struct Coord {
  Dim constant;
  std::vector<Term> terms;
  bool operator==(const Coord&) const = default;
};

using Index = std::vector<Coord>;

// The dimensions that a kernel runs through, before they are ordered and merged.
struct Space {
  std::vector<Dim> extents;   // none is the constant 1
  std::vector<bool> reduced;  // one per extent
};

Coord origin(ShapeEnv& env);
Coord along(ShapeEnv& env, int32_t axis);
Coord add(ShapeEnv& env, const Coord& a, const Coord& b);
Coord scale(ShapeEnv& env, const Coord& a, Dim factor);

// The index of an operand of sizes `from` that is broadcast to sizes `to`, read at `index` of the latter.
Index broadcast_index(ShapeEnv& env, std::span<const Dim> from, std::span<const Dim> to, const Index& index);

// The index into a tensor of sizes `from` that holds, in row-major order, what a tensor of sizes `to` holds at `index`.
// Empty where that takes a division: an axis runs over several dimensions of `from`.
std::optional<Index> reshape_index(ShapeEnv& env, const Space& space, std::span<const Dim> from,
                                   std::span<const Dim> to, const Index& index);

}  // namespace fxjit::inline v0::kernel
