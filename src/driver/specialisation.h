// One compiled form of a program: valid while its guards hold. Immutable but for counters.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/function.h"
#include "jit/cpu_jit.h"
#include "torch/host_program.h"
#include "torch/host_state.h"

namespace fxjit::inline v0::driver {

struct Specialisation {
  fxjit_specialised forward = nullptr;
  torch_::HostProgram program;
  size_t results = 0;  // length of forward's `out`
  std::vector<OutputSource> outputs;
  fx::Value structure;

  std::vector<std::shared_ptr<const void>> code;  // keeps forward and its kernels mapped
  std::function<std::string()> print_llvm;        // of forward and of each kernel, under headings
  SpecialisationReport report;

  mutable std::atomic<int64_t> hits{0};
  mutable std::atomic<uint64_t> last_use{0};
};

}  // namespace fxjit::inline v0::driver
