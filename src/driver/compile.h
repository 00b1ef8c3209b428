// From a typed program to a specialisation.
#pragma once

#include <string>
#include <vector>

#include "driver/specialisation.h"
#include "support/result.h"
#include "support/timer.h"
#include "torch/host_state.h"
#include "torch/import_record.h"

namespace fxjit::inline v0::driver {

struct CompileRequest {
  const Options& options;
  std::span<const std::string> input_names;
  std::vector<uint64_t> key_sets;  // of the inputs, when the call began
  torch_::HostState state;
  support::StageTimes times;  // stages before this one: capture, record, import
};

// Failure with the reason where some part cannot be compiled; then nothing has happened.
Result<SpecialisationPtr> compile(torch_::TypedProgram program, CompileRequest request);

}  // namespace fxjit::inline v0::driver
