// One run of a program under the recorder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fxjit/driver/example.h"
#include "torch/recorder.h"

namespace fxjit::inline v0::driver {

struct ExampleRun {
  std::vector<at::Tensor> inputs;
  std::unique_ptr<torch_::Recorder> recorder;
  std::vector<at::Tensor> outputs;
  fx::Value structure;  // Int leaves index `outputs`; other leaves are detail::constant_leaf

  const torch_::RecordedValue& value(torch_::ValueId id) const { return recorder->values()[static_cast<size_t>(id)]; }
};

// Every ATen call is recorded whole. TypeError and ValueError for tensors that are no example.
ExampleRun run_example(detail::ExampleSource& source, const detail::ModuleTree* tree, std::vector<at::Tensor> inputs);

// Where a call of the record is, for messages: "aten::item (call 3 of the record, after fc.weight was used)".
std::string describe_call(const ExampleRun& run, size_t call);
// Raises a TraceError for the first call that a graph cannot hold.
void check_record(const ExampleRun& run);

}  // namespace fxjit::inline v0::driver
