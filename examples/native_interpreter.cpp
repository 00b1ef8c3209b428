// A compiled GraphModule inside an ordinary torch::nn::Module: machine code that composes with everything else.
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/utils.h>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

// As torch programs are: nothing in it knows of fxjit.
struct ElementwiseImpl : torch::nn::Module {
  ElementwiseImpl() { scale = register_parameter("scale", torch::randn({8})); }
  at::Tensor forward(at::Tensor x, at::Tensor y) { return (x + y) * scale + x * 2.5; }
  at::Tensor scale;
};
TORCH_MODULE(Elementwise);

// Holds the compiled graph; the parameters stay the model's.
struct NativeImpl : torch::nn::Module {
  explicit NativeImpl(Elementwise model, at::Tensor x, at::Tensor y)
      : model(register_module("model", model)), graph(fxjit::record(model, {x, y})), compiled(fxjit::compile(graph)) {}
  at::Tensor forward(at::Tensor x, at::Tensor y) { return compiled(x, y); }
  Elementwise model;
  fx::GraphModuleRef graph;
  fxjit::CompiledFunction compiled;
};
TORCH_MODULE(Native);

int main() {
  torch::NoGradGuard no_grad;
  Elementwise model;
  Native native(model, torch::randn({2, 8}), torch::randn({2, 8}));
  torch::nn::Sequential net(native);  // a module as any other
  std::cout << native->graph->graph().to_string() << "\n\n";
  bool ok = true;
  for (int round = 0; round < 50; ++round) {  // sizes vary; one specialisation serves them
    const at::Tensor x = torch::randn({round % 7 + 2, 8}), y = torch::randn({round % 7 + 2, 8});
    ok = ok && close(net->forward(x, y), model(x, y));
  }
  check(ok, "50 rounds as eager");
  model->scale.mul_(2);  // parameters are read at each call
  const at::Tensor x = torch::randn({4, 8}), y = torch::randn({4, 8});
  check(close(net->forward(x, y), model(x, y)), "a parameter was written, as eager");
  const auto report = native->compiled.explain();
  std::cout << to_string(report);
  check(report.specialisations.size() == 1, "one specialisation");
}
