// The iteration space of a group, and how its outputs lie in it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fxjit/fx/node.h"
#include "fxjit/tensor_type.h"
#include "kernel/lower/index.h"
#include "support/result.h"

namespace fxjit::inline v0::kernel {

struct ReducedDims {
  std::vector<bool> reduced;  // one per dimension of the operand
  bool keepdim = false;
};

// What a call of a reduction (a row of reduce.def) reduces. Failure: an operand that is no tensor, dimensions that are
// no integers, or a reduction of dimensions of one element only.
Result<ReducedDims> reduced_dims(const fx::Node& node);

// Spaces to try, best first: with a reduction the one of its operand, else that of the first output, then finer ones
// of tensors that a view of the group reshapes.
Result<std::vector<Space>> candidate_spaces(ShapeEnv& env, std::span<fx::Node* const> nodes,
                                            std::span<fx::Node* const> outputs);

// The index at which the space's axes write a tensor of these sizes: all of it, or one element a row. Empty where the
// tensor is not laid over the space.
std::optional<Index> output_index(ShapeEnv& env, const Space& space, std::span<const Dim> sizes);

}  // namespace fxjit::inline v0::kernel
