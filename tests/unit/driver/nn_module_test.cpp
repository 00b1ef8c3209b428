// torch::nn modules as call_module nodes, and modules that serve tensors and Proxies alike.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "fxjit/compile.h"
#include "fxjit/fx/interpreter.h"
#include "fxjit/nn.h"
#include "helpers.h"

namespace fxjit {
namespace {

using testing::same;

struct NormBlock : Module<NormBlock> {
  explicit NormBlock(int64_t c)
      : Module("NormBlock"),
        fc(add("fc", torch::nn::Linear(c, c))),
        norm(add("norm", torch::nn::BatchNorm1d(c))),
        scale(add_parameter("scale", torch::randn({c}))) {}
  template <class T>
  T forward(T x) const {
    return norm(fc(x)).relu() * scale + x;
  }
  Submodule fc, norm;
  at::Tensor scale;
};

struct TwoBlocks : Module<TwoBlocks> {
  TwoBlocks()
      : Module("TwoBlocks"),
        first(add("first", fx::make_ref<NormBlock>(4))),
        second(add("second", fx::make_ref<NormBlock>(4))) {}
  template <class T>
  T forward(T x, T y) const {
    return second(first(x) + y);
  }
  Submodule first, second;
};

std::string listing(const fx::Graph& g) {
  std::string out;
  for (const fx::Node* n : g.nodes()) out += std::string(n->name()) + " ";
  return out;
}

class NnModules : public ::testing::Test {
 protected:
  torch::NoGradGuard no_grad;
};

TEST_F(NnModules, AModuleRunsEagerlyAndIsTraced) {
  const auto two = fx::make_ref<TwoBlocks>();
  const fx::GraphModuleRef gm = fx::symbolic_trace(two);
  EXPECT_EQ(listing(gm->graph()),
            "x y first_fc first_norm relu first_scale mul add add_1 second_fc second_norm relu_1 second_scale mul_1 "
            "add_2 output ");
  EXPECT_EQ(fx::find_module(*gm, "first.fc")->class_name(), "torch::nn::Linear");
  auto f = compile(gm);
  for (int64_t n : {3, 3, 5, 5}) {
    const at::Tensor x = torch::randn({n, 4}), y = torch::randn({n, 4});
    const at::Tensor want = two->forward(x, y);
    EXPECT_TRUE(same(to_tensor(fx::Interpreter(*gm).run({x, y})), want, 1e-5));
    EXPECT_TRUE(same(to_tensor((*gm)({x, y})), want, 1e-5));
    EXPECT_TRUE(same(f(x, y), want, 1e-5));
    EXPECT_TRUE(same(to_tensor(two->call(std::vector<fx::Value>{x, y}, {})), want, 1e-5));
  }
}

TEST_F(NnModules, ATorchModuleIsANodeOfAGraphBuiltByHand) {
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::Linear(6, 2));
  const auto root = fx::make_ref<fx::BasicModule>();
  root->register_module("net", nn_module(net));
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  fx::Node* w = graph->get_attr("net.1.bias");
  fx::Node* y = graph->call_module("net", fx::Argument::tuple({x}));
  graph->output(graph->call_function(aten("aten::mul.Tensor"), fx::Argument::tuple({y, w})));
  const fx::GraphModuleRef gm = fx::GraphModule::create(root, graph);
  gm->graph().lint();
  auto f = compile(gm);
  const at::Tensor in = torch::randn({3, 4});
  const auto eager = [&] { return net->forward(in) * net[1]->named_parameters()["bias"]; };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f(in), eager(), 1e-6));
  EXPECT_EQ(f.explain().specialisations.size(), 1u) << to_string(f.explain());
  net[0]->named_parameters()["weight"].mul_(3);  // read at call time
  EXPECT_TRUE(same(f(in), eager(), 1e-6));
  EXPECT_TRUE(same(to_tensor(fx::Interpreter(*gm).run({in})), eager(), 1e-6));
}

TEST_F(NnModules, TrainAndEvalAreSeen) {
  torch::nn::Sequential net(torch::nn::BatchNorm1d(4), torch::nn::Dropout(0.5));
  const auto root = fx::make_ref<fx::BasicModule>();
  root->register_module("net", nn_module(net));
  auto graph = fx::Graph::create();
  graph->output(graph->call_module("net", fx::Argument::tuple({graph->placeholder("x")})));
  auto f = compile(fx::GraphModule::create(root, graph));
  const at::Tensor x = torch::randn({8, 4});
  for (bool training : {false, true, false}) {
    net->train(training);
    for (int i = 0; i < 3; ++i) {
      torch::manual_seed(i);
      const at::Tensor got = f(x);
      if (training) {
        EXPECT_GT((got == 0).sum().item<int64_t>(), 0);
      } else {
        EXPECT_TRUE(same(got, net->forward(x), 1e-6));
      }
    }
  }
}

TEST_F(NnModules, MisuseIsAnErrorThatSaysWhy) {
  const fx::ModuleRef linear = nn_module(torch::nn::Linear(4, 4));
  const at::Tensor x = torch::randn({2, 4});
  EXPECT_THROW(linear->call(std::vector<fx::Value>{x, x}, {}), TypeError);
  EXPECT_THROW(linear->call(std::vector<fx::Value>{1}, {}), TypeError);
  EXPECT_THROW(linear->call(std::vector<fx::Value>{x}, fx::Argument::dict({{"input", x}})), TypeError);
  struct OpensAll : fx::Tracer {
    bool is_leaf_module(const fx::Module&, std::string_view) override { return false; }
  } opens_all;
  EXPECT_THROW(opens_all.trace(fx::make_ref<NormBlock>(4)), NotImplementedError);
  auto graph = fx::Graph::create();
  fx::Node* n = graph->placeholder("x");
  const Submodule child(linear);
  EXPECT_THROW(child(fx::Proxy(n)), TypeError);  // a tracer that knows no modules
  EXPECT_THROW(fx::make_ref<TwoBlocks>()->call(std::vector<fx::Value>{x}, {}), TypeError);
}

TEST_F(NnModules, TracerHooksAreAsked) {
  struct Paths : fx::Tracer {
    std::vector<std::string> seen;
    bool is_leaf_module(const fx::Module& m, std::string_view path) override {
      seen.emplace_back(path);
      return m.is_standard() || path == "first";
    }
  } paths;
  const fx::GraphPtr graph = paths.trace(fx::make_ref<TwoBlocks>());
  EXPECT_EQ(paths.seen, (std::vector<std::string>{"first", "second", "second.fc", "second.norm"}));
  EXPECT_EQ(listing(*graph), "x y first add second_fc second_norm relu second_scale mul add_1 output ");
}

}  // namespace
}  // namespace fxjit
