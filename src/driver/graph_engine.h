// How a GraphModule runs: specialisations for what it was called with, the generic form for the rest. Serves the
// module's own Executor and compile(module).
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "driver/front.h"
#include "driver/generic_form.h"
#include "driver/graph_inputs.h"

namespace fxjit::inline v0::driver {

class GraphEngine {
 public:
  explicit GraphEngine(Options options);
  ~GraphEngine();

  // The hot path: tensors in, one tensor out, through a specialisation. Empty where none fits.
  std::optional<at::Tensor> try_tensors(fx::GraphModule& root, std::span<c10::TensorImpl* const> in);
  // Any values. While a recorder is on it runs the program node by node.
  fx::Value call(fx::GraphModule& root, std::span<const fx::Value> args, const fx::Value& kwargs);

  Report report(fx::GraphModule& root);
  // The generic form, then each specialisation, under headings.
  std::string code(fx::GraphModule& root);
  // Forgets all specialisations of the current program.
  void reset();
  // The snapshot has changed: lets go of the code of the old one, which lives as long as somebody runs it.
  void forget();

 private:
  // Calls with one set of constants.
  struct Variant {
    fx::Value key;
    bool plain = false;  // nothing but tensors in
    GraphAttributes attributes;
    std::shared_ptr<Function> function;
  };
  using VariantPtr = std::shared_ptr<const Variant>;
  using List = std::vector<VariantPtr>;

  // One snapshot.
  struct Program {
    Program(std::shared_ptr<const fx::Snapshot> s, const Options& options)
        : snapshot(std::move(s)), generic(snapshot->graph, options) {}
    std::shared_ptr<const fx::Snapshot> snapshot;
    GenericForm generic;
    std::vector<std::string> input_names;
    std::mutex mutex;                 // the next three
    fx::GraphPtr recorded;            // composites inlined; made by the first recording
    std::vector<CallReport> reasons;  // of calls that no variant was made for
    int64_t generic_calls = 0;
    std::mutex recording;  // one thread records, the others run the generic form meanwhile
    const fx::Graph& recorded_graph();
  };
  // Replaced whole: a call reads one pointer.
  struct Current {
    std::shared_ptr<Program> program;
    List variants;
  };
  using CurrentPtr = std::shared_ptr<const Current>;

  CurrentPtr current(fx::GraphModule& root);
  VariantPtr variant_for(fx::GraphModule& root, const Current& c, const GraphArguments& a);
  VariantPtr make_variant(const Program& p, const GraphArguments& a, GraphAttributes attributes) const;
  fx::Value run_variant(fx::GraphModule& root, Program& p, const Variant& v, const GraphArguments& a,
                        std::span<const fx::Value> bound);
  void note_generic(Program& p, const std::string& reason);

  Options options_;
  std::atomic<CurrentPtr> current_;
  std::mutex build_;  // writes of current_
  std::atomic<bool> warned_{false};
  GivenUp given_up_;  // on this program
};

}  // namespace fxjit::inline v0::driver
