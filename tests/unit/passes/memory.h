// Tensors of the evaluator, element by element.
#pragma once

#include <cstdint>
#include <vector>

#include "evaluator.h"

namespace fxjit::inline v0::passes {

std::vector<int64_t> hints(const ShapeEnv& env, const std::vector<Dim>& dims);
// Memory of its own, filled with a pattern.
Tensor allocate(const ShapeEnv& env, const TensorTypePtr& type);
// In row-major order.
std::vector<double> read(const ShapeEnv& env, const Tensor& t);
void write(const ShapeEnv& env, const Tensor& t, const std::vector<double>& values);

}  // namespace fxjit::inline v0::passes
