// Put an activation that is chosen at run time behind the output of a module.
#include <ATen/TensorOperators.h>

#include <functional>
#include <map>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

using Activation = std::function<fx::Proxy(fx::Proxy)>;

// The activation is traced on its own; its graph is copied behind the module's last value.
void wrap_output(fx::GraphModule& module, const Activation& activation) {
  const fx::GraphModuleRef traced = fx::symbolic_trace(activation);
  fx::Graph& graph = module.graph();
  fx::Node* output = graph.output_node();
  const fx::Node* input = traced->graph().find_nodes(fx::Opcode::Placeholder)[0];
  const auto scope = graph.inserting_before(output);
  fx::NodeMap map{{input, output->arg(0)}};
  const fx::Argument wrapped = *graph.graph_copy(traced->graph(), map);
  output->set_args(fx::Argument::tuple({wrapped}));
  graph.lint();
  module.recompile();
}

int main() {
  const std::map<std::string, Activation> activations = {
      {"relu", [](fx::Proxy x) { return x.relu(); }},
      {"gelu", [](fx::Proxy x) { return fxjit::call_aten("gelu", x); }},
      {"silu", [](fx::Proxy x) { return x * x.sigmoid(); }},
  };
  const at::Tensor x = at::randn({3, 4});
  const auto program = [](auto x) { return x * 2 + 1; };
  for (const auto& [name, activation] : activations) {
    const fx::GraphModuleRef module = fx::symbolic_trace([&](fx::Proxy x) { return program(x); });
    wrap_output(*module, activation);
    std::cout << "== " << name << "\n" << module->graph().to_string() << "\n";
    const at::Tensor y = program(x);
    const at::Tensor want = name == "relu" ? y.relu() : fxjit::call_aten(name, y);
    check(close(fxjit::to_tensor((*module)({x})), want), name.c_str());
  }
}
