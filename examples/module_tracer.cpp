// Find out which module each operation of a network comes from.
#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <unordered_map>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

torch::nn::Conv2d conv3x3(int64_t in, int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
}

// Two convolutions and a way around them.
struct Block : fxjit::Module<Block> {
  explicit Block(int64_t c)
      : Module("Block"),
        conv1(add("conv1", conv3x3(c, c))),
        bn1(add("bn1", torch::nn::BatchNorm2d(c))),
        conv2(add("conv2", conv3x3(c, c))),
        bn2(add("bn2", torch::nn::BatchNorm2d(c))) {}
  template <class T>
  T forward(T x) const {
    T y = bn1(conv1(x)).relu();
    return (bn2(conv2(y)) + x).relu();
  }
  fxjit::Submodule conv1, bn1, conv2, bn2;
};

struct ResNet : fxjit::Module<ResNet> {
  ResNet()
      : Module("ResNet"),
        stem(add("stem", conv3x3(3, 8))),
        layer1(add("layer1", fx::make_ref<Block>(8))),
        layer2(add("layer2", fx::make_ref<Block>(8))),
        fc(add("fc", torch::nn::Linear(8, 10))) {}
  template <class T>
  T forward(T x) const {
    T y = layer2(layer1(stem(x)));
    return fc(y.flatten(2).mean(-1));
  }
  fxjit::Submodule stem, layer1, layer2, fc;
};

// Keeps the path of the module whose forward runs, and notes it for each node that is made meanwhile.
struct ModulePathTracer : fx::Tracer {
  std::string path;
  std::unordered_map<const fx::Node*, std::string> origin;

  fx::Argument call_module(const fx::ModuleRef& m, fxjit::FunctionRef<fx::Argument()> forward,
                           std::span<const fx::Argument> args, const fx::Argument& kwargs) override {
    const std::string outer = std::exchange(path, path_of_module(*m));
    fx::Argument result = Tracer::call_module(m, forward, args, kwargs);
    path = outer;
    return result;
  }

  fx::Proxy create_proxy(fx::Opcode op, const fx::Target& target, fx::Argument args, fx::Argument kwargs,
                         std::optional<std::string_view> name, fx::Argument type) override {
    const fx::Proxy p = Tracer::create_proxy(op, target, args, kwargs, name, type);
    origin[p.node()] = path;
    return p;
  }
};

int main() {
  c10::NoGradGuard no_grad;
  const auto model = fx::make_ref<ResNet>();
  ModulePathTracer tracer;
  const fx::GraphModuleRef module = fx::GraphModule::create(model, tracer.trace(model));
  std::unordered_map<std::string, std::string> by_name;
  for (const fx::Node* n : module->graph().nodes()) {
    if (n->op() == fx::Opcode::Output) continue;  // made without a Proxy
    by_name[std::string(n->name())] = tracer.origin[n];
    std::cout << n->name() << ": " << (tracer.origin[n].empty() ? "(the root)" : tracer.origin[n]) << "\n";
  }
  check(by_name["layer1_conv2"] == "layer1.conv2" && by_name["relu_1"] == "layer1" && by_name["mean"].empty(),
        "nodes know their modules");
  const at::Tensor x = at::randn({2, 3, 16, 16});
  check(close(fxjit::to_tensor((*module)({x})), model->forward(x)), "the graph computes what the model computes");
}
