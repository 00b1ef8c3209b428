// Replace the call of a module by what the module does, by calling it with Proxies.
#include <ATen/TensorOperators.h>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

struct Gate : fxjit::Module<Gate> {
  Gate() : Module("Gate") {}
  template <class T>
  T forward(T x) const {
    return (x * 0.5).sigmoid() * x;
  }
};

struct Model : fxjit::Module<Model> {
  Model() : Module("Model"), gate(add("gate", fx::make_ref<Gate>())) {}
  template <class T>
  T forward(T x) const {
    T a = gate(x);  // statements: C++ does not order the operands of +
    T b = gate(x + 1);
    return a + b;
  }
  fxjit::Submodule gate;
};

struct GateIsLeaf : fx::Tracer {
  bool is_leaf_module(const fx::Module& m, std::string_view) override { return m.class_name() == "Gate"; }
};

// Records the body of `gate` in place of each call of the module at `path`.
void inline_module(fx::GraphModule& module, std::string_view path, const Gate& gate) {
  fx::Graph& graph = module.graph();
  fx::GraphAppendingTracer tracer(graph);
  for (fx::Node* n : graph.find_nodes(fx::Opcode::CallModule, path)) {
    const auto scope = graph.inserting_before(n);
    const fx::Proxy result = gate.forward(fx::Proxy(n->arg(0).as_node(), tracer));
    n->replace_all_uses_with(result.node());
    graph.erase_node(n);
  }
  module.recompile();  // until here the module ran its old graph
}

int main() {
  const auto model = fx::make_ref<Model>();
  GateIsLeaf tracer;
  const fx::GraphModuleRef module = fx::GraphModule::create(model, tracer.trace(model));
  std::cout << "== gate is a leaf\n" << module->graph().to_string() << "\n\n";
  inline_module(*module, "gate", Gate());
  module->graph().lint();
  std::cout << "== gate is inlined\n" << module->graph().to_string() << "\n";
  const at::Tensor x = at::randn({8});
  check(close(fxjit::to_tensor((*module)({x})), model->forward(x)), "as eager");
}
