#include "driver/graph_record.h"

#include <unordered_set>

#include "fxjit/fx/interpreter.h"
#include "fxjit/fx/wrap.h"
#include "torch/method_resolver.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::driver {
namespace {

bool is_builtin(const fx::Callable& f) { return fx::builtin_function(f.qualified_name()).get() == &f; }

bool is_tensor(const fx::Value& v) { return v.is_object() && torch_::as_tensor(v).defined(); }

// Tensors, and structures of nothing else.
bool all_tensors(const fx::Value& v) {
  bool all = true;
  fx::map_aggregate(v, [&](const fx::Value& leaf) {
    all &= is_tensor(leaf);
    return leaf;
  });
  return all;
}

// Errors keep their type: an exception that is not fxjit's own is not wrapped, so that it is the one eager raises.
class PlainInterpreter : public fx::Interpreter {
 public:
  PlainInterpreter(fx::GraphModule& root, const fx::Graph& graph, std::span<const fx::Value> bound)
      : fx::Interpreter(&root, graph, &torch_::method_resolver()) {
    size_t i = 0;
    for (const fx::Node* n : graph.nodes())
      if (n->op() == fx::Opcode::Placeholder) set_value(*n, bound[i++]);
  }

 protected:
  void annotate_error(const fx::Node&, const std::string&) override { throw; }
};

class RecordingInterpreter final : public PlainInterpreter {
 public:
  RecordingInterpreter(fx::GraphModule& root, const fx::Graph& graph, std::span<const fx::Value> bound,
                       Recording& recording)
      : PlainInterpreter(root, graph, bound), root_(root), recording_(recording) {}

  fx::Value run_node(const fx::Node& n) override {
    recording_.begin_scope(n.name(), looks_at_sizes(n));
    fx::Value v = fx::Interpreter::run_node(n);
    recording_.end_scope();
    if (n.op() != fx::Opcode::Output && !all_tensors(v)) host_values_.insert(&n);
    return v;
  }

 private:
  // Values of the host that the program computes are not computed again: they are good for the sizes that made them.
  // (Arguments that are no tensors are part of the key.)
  bool reads_host_value(const fx::Node& n) const {
    for (const fx::Node* input : n.all_input_nodes())
      if (host_values_.contains(input)) return true;
    return false;
  }

  bool looks_at_sizes(const fx::Node& n) {
    switch (n.op()) {
      case fx::Opcode::CallFunction:
        return calls_function(n.callable(), n) || reads_host_value(n);
      case fx::Opcode::CallModule:
        return calls_module(n);
      case fx::Opcode::CallMethod:
      case fx::Opcode::Output:
        return reads_host_value(n);
      case fx::Opcode::GetAttr:
      case fx::Opcode::Placeholder:
      case fx::Opcode::Root:
        return false;
    }
    return true;
  }

  bool calls_function(const fx::Callable& f, const fx::Node& n) {
    if (torch_::is_operator(f) || is_builtin(f)) return false;
    if (f.is_composite() && f.always_leaf()) refuse(n, "calls " + f.pretty_name() + ", which is marked as a leaf");
    if (f.is_impure(n.args(), n.kwargs(), true)) refuse(n, "calls " + f.pretty_name() + ", which has side effects");
    return true;
  }

  bool calls_module(const fx::Node& n) {
    const fx::ModuleRef m = fx::find_module(root_, n.target_str());
    if (m && m->is_impure()) refuse(n, "calls " + m->class_name() + ", which has side effects");
    return true;
  }

  void refuse(const fx::Node& n, const std::string& why) { recording_.refuse(std::string(n.name()) + " " + why); }

  fx::GraphModule& root_;
  Recording& recording_;
  std::unordered_set<const fx::Node*> host_values_;
};

}  // namespace

fx::GraphPtr inline_for_recording(const fx::Graph& graph) {
  fx::GraphPtr copy = graph.copy();
  try {
    fx::inline_composites(
        *copy, [](const fx::Node& n) { return !n.callable().is_impure(n.args(), n.kwargs(), true); },
        /*recursive=*/true);
    return copy;
  } catch (const Error&) {
    return graph.copy();  // a body that holds a tensor, or takes a constant where it was traced with a value
  }
}

fx::Value record_graph(fx::GraphModule& root, const fx::Graph& graph, std::span<const fx::Value> bound,
                       Recording& recording) {
  const fx::Value result = RecordingInterpreter(root, graph, bound, recording).run(std::span<const fx::Value>());
  GraphResult parts = take_result_apart(result);
  if (!parts.problem.empty()) recording.refuse(parts.problem);
  recording.finish(std::move(parts.tensors), std::move(parts.structure));
  return result;
}

fx::Value interpret_graph(fx::GraphModule& root, const fx::Graph& graph, std::span<const fx::Value> bound) {
  return PlainInterpreter(root, graph, bound).run(std::span<const fx::Value>());
}

}  // namespace fxjit::inline v0::driver
