// Write a graph by hand, with Proxies that do the bookkeeping.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

int main() {
  fx::GraphPtr graph = fx::Graph::create();
  fx::GraphAppendingTracer tracer(*graph);  // Proxies that meet in an operation must belong to one tracer
  const fx::Proxy x(graph->placeholder("x"), tracer), y(graph->placeholder("y"), tracer),
      z(graph->placeholder("z"), tracer);
  const fx::Proxy both = fxjit::call_aten("cat", std::vector{x, y});
  const fx::Proxy result = (both * z).relu().sum();
  graph->output(result);
  graph->lint();
  std::cout << graph->to_string() << "\n";

  const fx::GraphModuleRef module = fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), graph);
  const at::Tensor a = at::randn({2, 3}), b = at::randn({4, 3}), c = at::randn({3});
  check(close(fxjit::to_tensor((*module)({a, b, c})), (at::cat({a, b}) * c).relu().sum()), "as eager");

  fx::GraphPtr other = fx::Graph::create();
  fx::GraphAppendingTracer stranger(*other);
  try {
    fxjit::call_aten("cat", std::vector{x, fx::Proxy(other->placeholder("w"), stranger)});
    check(false, "Proxies of two tracers were mixed");
  } catch (const fxjit::RuntimeError& e) {
    std::cout << "Proxies of two tracers: " << e.what() << "\n";
  }
}
