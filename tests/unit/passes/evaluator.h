// Runs typed graphs plainly, before and after passes: each operator alone as a kernel of its own through the kernel
// interpreter, views as views of shared memory, composites and in-place operators by their definition.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "program.h"

namespace fxjit::inline v0::passes {

struct Tensor {
  TensorTypePtr type;
  std::shared_ptr<std::vector<uint8_t>> memory;
  int64_t offset = 0;  // elements
};

using Inputs = std::vector<Tensor>;  // one per placeholder, in order

// Values that the type holds, of moderate size; `seed` decides.
Inputs random_inputs(const Program& p, uint64_t seed);

struct Outcome {
  std::vector<Tensor> results;
  std::vector<std::string> effects;  // names of impure calls, in order
};

// Writes the inputs where the program does.
Outcome evaluate(Program& p, const Inputs& inputs);

// The elements in row-major order, as doubles.
std::vector<double> elements(const Program& p, const Tensor& t);

struct Execution {
  Inputs inputs;  // as they are afterwards
  Outcome outcome;
};
Execution run_program(Program& p, uint64_t seed);

// What differs in results, their aliasing, or the inputs afterwards; empty if nothing does.
std::string difference(const Program& p, const Execution& before, const Execution& after, double tolerance);

// Runs `pass` on the program and checks that results, written inputs and aliasing of results are as before. Reductions
// and composites may differ by `tolerance` (relative).
void expect_same_after(Program& p, const std::function<void(PassContext&)>& pass, double tolerance = 0);

}  // namespace fxjit::inline v0::passes
