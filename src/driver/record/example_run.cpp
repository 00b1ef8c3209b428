#include "driver/record/example_run.h"

#include <unordered_set>

#include "support/errors.h"

namespace fxjit::inline v0::driver {
namespace {

using support::concat;

struct Obstacle {
  torch_::CallFlag flag;
  const char* text;
};

// kMetadata is none: the operator is a node, and changes the tensor at each run as it did at this one.
constexpr Obstacle kObstacles[] = {
    {torch_::kDataRead,
     "reads data of a tensor on the host: what the program does with it is not seen. Keep it a tensor, or record the "
     "parts around it"},
    {torch_::kDynamicShape, "has a result whose size depends on data: what follows would be good for these data only"},
    {torch_::kChangedInput, "uses a tensor whose sizes or storage changed outside of ATen (set_data, resize of data)"},
    {torch_::kOpaqueValue, "has an argument or result that is no plain value, such as a generator"},
};

const std::string* last_attribute(const ExampleRun& run, size_t call) {
  const auto attribute_of = [&](const torch_::RecordedArg& a) -> const std::string* {
    if (a.kind != torch_::RecordedArg::Tensor || run.value(a.value).origin != torch_::Origin::Attribute) return nullptr;
    return &run.recorder->attributes()[static_cast<size_t>(run.value(a.value).index)].path;
  };
  for (size_t i = call + 1; i-- > 0;)
    for (const torch_::RecordedArg& a : run.recorder->calls()[i].args)
      if (const std::string* path = attribute_of(a)) return path;
  return nullptr;
}

}  // namespace

std::string describe_call(const ExampleRun& run, size_t call) {
  const std::string* path = last_attribute(run, call);
  return concat(run.recorder->calls()[call].name(), " (call ", call, " of the record",
                path ? concat(", after ", *path, " was used") : std::string(), ")");
}

void check_record(const ExampleRun& run) {
  const auto& calls = run.recorder->calls();
  for (size_t i = 0; i < calls.size(); ++i)
    for (const Obstacle& o : kObstacles)
      if (calls[i].flags & o.flag) throw TraceError(concat(describe_call(run, i), " ", o.text));
}

ExampleRun run_example(detail::ExampleSource& source, const detail::ModuleTree* tree, std::vector<at::Tensor> inputs) {
  if (inputs.size() != source.arity()) {
    throw TypeError(
        concat("record: ", source.name(), " takes ", source.arity(), " tensors, the example has ", inputs.size()));
  }
  std::unordered_set<const void*> seen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw ValueError(concat("record: tensor ", i, " of the example is undefined"));
    if (!seen.insert(inputs[i].unsafeGetTensorImpl()).second)
      throw ValueError(concat("record: tensor ", i, " of the example is given twice: use a clone, or the graph cannot ",
                              "tell the parameters apart"));
  }
  ExampleRun run{std::move(inputs), std::make_unique<torch_::Recorder>(), {}, {}};
  for (const at::Tensor& t : run.inputs) run.recorder->add_input(t);
  if (tree)
    for (const detail::NamedTensor& a : tree->attributes) run.recorder->add_attribute(a.tensor, a.name);
  std::vector<at::Tensor> args = run.inputs;
  torch_::RecordingGuard on(*run.recorder);
  run.structure = source.run(args, run.outputs);
  return run;
}

}  // namespace fxjit::inline v0::driver
