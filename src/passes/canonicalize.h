// Calls that give back their operand become the operand: to() a type that it has, contiguous() of what is, dropout
// outside training. detach() and alias() make another tensor over the same memory: they stay where the caller gets it.
// split, chunk and unbind become a slice or select per part, which kernels can look through.
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> canonicalize(PassContext& context);

// True if the call gives back its first operand, of type `t`: the very tensor.
bool returns_operand(const fx::Node& n, const TensorType& t, ShapeEnv& env);

}  // namespace fxjit::inline v0::passes
