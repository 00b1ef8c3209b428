// Build the inverse of a function: walk its graph backwards and replace each operation by its inverse.
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>

#include <map>
#include <unordered_map>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

// Operators by Python's name, methods by theirs.
const std::map<std::string_view, std::string_view> kInverse = {
    {"_operator.add", "_operator.sub"},
    {"_operator.sub", "_operator.add"},
    {"_operator.mul", "_operator.truediv"},
    {"_operator.truediv", "_operator.mul"},
    {"exp", "log"},
    {"log", "exp"},
    {"sinh", "asinh"},
    {"tanh", "atanh"},
};

// The inverse of a chain of invertible operations from one input to one output.
fx::GraphModuleRef invert(const fx::Graph& f) {
  fx::GraphPtr graph = fx::Graph::create();
  std::unordered_map<const fx::Node*, fx::Node*> value;  // node of f → node that gives its value back
  for (fx::Node* n : f.nodes().reversed()) {
    if (n->op() == fx::Opcode::Output) {
      value[n->arg(0).as_node()] = graph->placeholder("y");
      continue;
    }
    if (n->op() == fx::Opcode::Placeholder) {
      graph->output(value[n]);
      continue;
    }
    const bool function = n->op() == fx::Opcode::CallFunction;
    const auto inverse = kInverse.find(function ? n->callable().qualified_name() : n->target_str());
    if (inverse == kInverse.end()) throw fxjit::ValueError("no inverse is known for " + n->format_node());
    std::vector<fx::Argument> args(n->args().items().begin(), n->args().items().end());
    fx::Node* input = args[0].as_node();
    args[0] = value[n];
    value[input] = function ? graph->call_function(fx::builtin_function(inverse->second), fx::Argument::tuple(args))
                            : graph->call_method(inverse->second, fx::Argument::tuple(args));
  }
  graph->lint();
  return fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), graph);
}

int main() {
  const auto f = [](auto x) { return (x * 3 - 2).tanh().exp() + 1; };
  const fx::GraphModuleRef module = fx::symbolic_trace([&](fx::Proxy x) { return f(x); });
  const fx::GraphModuleRef inverse = invert(module->graph());
  std::cout << "== f\n" << module->graph().to_string() << "\n\n";
  std::cout << "== its inverse\n" << inverse->graph().to_string() << "\n";
  const at::Tensor x = at::rand({100}, at::kDouble);
  check(close(fxjit::to_tensor((*inverse)({f(x)})), x), "the inverse of f(x) is x");
}
