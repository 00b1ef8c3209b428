// Replace an operation that programs write in several ways.
#include <ATen/ops/randint.h>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

// x + y, at::add(x, y) and x.add(y) are three kinds of nodes.
bool is_addition(const fx::Node& n) {
  if (n.op() == fx::Opcode::CallMethod) return n.target_str() == "add";
  return n.op() == fx::Opcode::CallFunction &&
         (n.target() == fx::builtin_function("_operator.add") || n.target() == fxjit::aten("add"));
}

// Every addition becomes a bitwise_and; returns how many there were.
int replace_additions(fx::GraphModule& module) {
  int count = 0;
  fx::Graph& graph = module.graph();
  for (fx::Node* n : graph.nodes()) {
    if (!is_addition(*n)) continue;
    const auto scope = graph.inserting_after(n);
    n->replace_all_uses_with(graph.call_function(fxjit::aten("bitwise_and"), n->args(), n->kwargs()));
    graph.erase_node(n);  // possible once nobody uses it
    ++count;
  }
  graph.lint();
  module.recompile();
  return count;
}

int main() {
  const fx::GraphModuleRef module = fx::symbolic_trace([](fx::Proxy x, fx::Proxy y) {
    const fx::Proxy a = x + y, b = fxjit::call_aten("add", x, y), c = x.add(y);
    return a + b + c;
  });
  std::cout << "== before\n" << module->graph().to_string() << "\n\n";
  check(replace_additions(*module) == 5, "five additions were found");
  std::cout << "== after\n" << module->graph().to_string() << "\n";
  const at::Tensor x = at::randint(16, {8}), y = at::randint(16, {8});
  check(fxjit::to_tensor((*module)({x, y})).equal(x.bitwise_and(y)), "the sum is a bitwise_and now");
}
