#include "fxjit/record.h"

#include <optional>

#include "driver/record/recorded_graph.h"
#include "support/errors.h"

namespace fxjit::inline v0 {
namespace {

// "my::ResNetImpl" → "ResNet", as the class would be called in Python.
std::string short_class_name(std::string name) {
  if (const size_t at = name.rfind("::"); at != name.npos) name = name.substr(at + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

}  // namespace

fx::GraphModuleRef detail::record_source(ExampleSource& source, std::vector<at::Tensor> example,
                                         const RecordOptions& options) {
  const std::unique_ptr<ModuleTree> tree = source.tree();
  if (!tree && (!options.leaves.empty() || options.is_leaf))
    throw ValueError("record: a function has no submodules that could be leaves");
  const driver::ExampleRun run = driver::run_example(source, tree.get(), std::move(example));
  driver::check_record(run);
  std::optional<driver::ExampleRun> other;
  if (!options.other.empty()) {
    other = driver::run_example(source, tree.get(), options.other);
    driver::check_record(*other);
  }
  driver::RecordedGraph g = driver::build_recorded_graph(run, other ? &*other : nullptr, tree.get(), options);
  if (options.recognise) {
    driver::recognise_linear(g);
    driver::recognise_attention(g, options.masked_attention);
  }
  g.graph->eliminate_dead_code();
  if (tree) driver::fold_leaves(g, *tree, options);
  fx::GraphModuleRef module = fx::GraphModule::create(g.root, g.graph, short_class_name(source.name()));
  module->graph().lint();
  return module;
}

}  // namespace fxjit::inline v0
