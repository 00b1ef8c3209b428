// Change what a Tracer records: open a leaf module, and tag every node that is made.
#include <c10/core/GradMode.h>
#include <torch/nn/modules/linear.h>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

// Written for tensors and Proxies alike; its name makes it a leaf, as all that is called torch::nn is.
struct ReLU : fxjit::Module<ReLU> {
  ReLU() : Module("torch::nn::ReLU") {}
  template <class T>
  T forward(T x) const {
    return x.relu();
  }
};

struct Model : fxjit::Module<Model> {
  Model() : Module("Model"), linear(add("linear", torch::nn::Linear(4, 4))), relu(add("relu", fx::make_ref<ReLU>())) {}
  template <class T>
  T forward(T x) const {
    return relu(linear(x)) + 1;
  }
  fxjit::Submodule linear, relu;
};

struct OpenReLU : fx::Tracer {
  bool is_leaf_module(const fx::Module& m, std::string_view path) override {
    return m.class_name() != "torch::nn::ReLU" && Tracer::is_leaf_module(m, path);
  }
};

// Every node passes create_node: the one place to mark them all.
struct Tagging : fx::Tracer {
  fx::Node* create_node(fx::Opcode op, const fx::Target& target, fx::Argument args, fx::Argument kwargs,
                        std::optional<std::string_view> name, fx::Argument type) override {
    fx::Node* n = Tracer::create_node(op, target, args, kwargs, name, type);
    n->meta().set("tag", op == fx::Opcode::Placeholder ? "input" : "work");
    return n;
  }
};

int main() {
  c10::NoGradGuard no_grad;
  const auto model = fx::make_ref<Model>();
  const at::Tensor x = at::randn({3, 4});
  fx::Tracer plain;
  OpenReLU open_relu;
  Tagging tagging;
  for (fx::Tracer* tracer : {&plain, static_cast<fx::Tracer*>(&open_relu), static_cast<fx::Tracer*>(&tagging)}) {
    const fx::GraphModuleRef module = fx::GraphModule::create(model, tracer->trace(model));
    std::cout << module->graph().to_string() << "\n";
    check(close(fxjit::to_tensor((*module)({x})), model->forward(x)), "as eager\n");
  }
  check(open_relu.graph().find_nodes(fx::Opcode::CallMethod, "relu").size() == 1, "ReLU was opened");
  for (const fx::Node* n : tagging.graph().nodes())
    std::cout << n->name() << ": " << n->meta_if_any()->find("tag")->as_str() << "\n";
}
