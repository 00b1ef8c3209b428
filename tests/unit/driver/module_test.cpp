// compile() of torch::nn modules as they are.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <array>

#include "fxjit/compile.h"
#include "helpers.h"

namespace fxjit {
namespace {

using testing::same;

struct MlpImpl : torch::nn::Module {
  MlpImpl() {
    first = register_module("first", torch::nn::Linear(8, 16));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})));
    second = register_module("second", torch::nn::Linear(16, 4));
    scale = register_buffer("scale", torch::full({4}, 0.5));
  }
  at::Tensor forward(at::Tensor x) { return second(torch::gelu(norm(first(x)))) * scale; }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  at::Tensor scale;
};
TORCH_MODULE(Mlp);

class CompileModule : public ::testing::Test {
 protected:
  torch::NoGradGuard no_grad;
};

TEST_F(CompileModule, AHolderAndASharedPointerAreCompiledAsTheyAre) {
  torch::nn::Linear linear(5, 3);
  auto f = compile(linear);
  auto g = compile(linear.ptr());
  for (int i = 0; i < 3; ++i) {
    at::Tensor x = torch::randn({4, 5});
    EXPECT_TRUE(same(f(x), linear(x), 1e-6));
    EXPECT_TRUE(same(g(x), linear(x), 1e-6));
  }
  EXPECT_EQ(f.explain().specialisations.size(), 1u) << to_string(f.explain());
  EXPECT_NE(f.explain().capture.find("LinearImpl"), std::string::npos);
}

TEST_F(CompileModule, ModelsEqualEager) {
  Mlp mlp;
  auto f = compile(mlp);
  for (int64_t batch : {4, 4, 9, 9}) {
    at::Tensor x = torch::randn({batch, 8});
    EXPECT_TRUE(same(f(x), mlp(x), 1e-5));
  }
  EXPECT_EQ(f.explain().specialisations.size(), 2u) << to_string(f.explain());
  torch::nn::Sequential conv(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 6, 3).padding(1)), torch::nn::BatchNorm2d(6),
                             torch::nn::ReLU());
  conv->eval();
  auto g = compile(conv);
  for (int i = 0; i < 3; ++i) {
    at::Tensor x = torch::randn({2, 3, 7, 7});
    if (i == 2) x = x.contiguous(at::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(same(g(x), conv->forward(x), 1e-5));
  }
  EXPECT_GE(g.explain().specialisations.size(), 1u) << to_string(g.explain());
}

TEST_F(CompileModule, ParametersAreReadAtCallTime) {
  Mlp mlp;
  auto f = compile(mlp);
  at::Tensor x = torch::randn({4, 8});
  f(x);
  mlp->first->weight.mul_(2);
  EXPECT_TRUE(same(f(x), mlp(x), 1e-5));
  mlp->second->bias.set_data(torch::randn({4}));
  EXPECT_TRUE(same(f(x), mlp(x), 1e-5));
  for (auto& p : mlp->parameters()) p.mutable_grad() = torch::ones_like(p);
  torch::optim::SGD sgd(mlp->parameters(), 0.1);
  sgd.step();
  EXPECT_TRUE(same(f(x), mlp(x), 1e-5));
  EXPECT_EQ(f.explain().recorded_calls, 1);
  mlp->to(torch::kDouble);
  at::Tensor y = x.to(torch::kDouble);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(y), mlp(y), 1e-9));
}

TEST_F(CompileModule, AMemberThatIsAssignedAnewIsNoticed) {
  torch::nn::Linear linear(3, 3);
  auto f = compile(linear);
  at::Tensor x = torch::randn({2, 3});
  f(x);
  f(x);
  linear->weight = torch::ones({3, 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f(x), linear(x), 1e-6));
  // The new tensor is registered nowhere: eager it is.
  EXPECT_TRUE(f.explain().specialisations.empty());
  EXPECT_NE(to_string(f.explain()).find("unknown origin"), std::string::npos) << to_string(f.explain());
}

TEST_F(CompileModule, AReplacedSubmoduleIsNoticed) {
  Mlp mlp;
  auto f = compile(mlp);
  at::Tensor x = torch::randn({2, 8});
  f(x);
  f(x);
  mlp->first = mlp->replace_module("first", torch::nn::Linear(8, 16));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f(x), mlp(x), 1e-5));
  driver::Report r = f.explain();
  ASSERT_EQ(r.specialisations.size(), 1u) << to_string(r);
  EXPECT_EQ(r.specialisations[0].hits, 2);
  mlp->norm->eval();  // a flag of the kept submodules is seen all the same
  f(x);
  EXPECT_EQ(f.explain().specialisations.size(), 2u);
}

TEST_F(CompileModule, TrainAndEvalAreSeen) {
  torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::BatchNorm1d(4));
  torch::nn::Sequential twin(torch::nn::Linear(4, 4), torch::nn::BatchNorm1d(4));
  auto sync = [&] {
    auto from = net->named_parameters(), to = twin->named_parameters();
    for (auto& p : to) p.value().copy_(from[p.key()]);
  };
  sync();
  auto f = compile(net);
  for (bool train : {true, false, true, false, true, true}) {
    net->train(train);
    twin->train(train);
    at::Tensor x = torch::randn({8, 4});
    EXPECT_TRUE(same(f(x), twin->forward(x), 1e-5)) << train;
    for (const auto& b : net->named_buffers()) EXPECT_TRUE(same(b.value(), twin->named_buffers()[b.key()], 1e-6));
  }
}

TEST_F(CompileModule, ASubmodulesOwnTrainingFlagIsSeen) {
  struct NetImpl : torch::nn::Module {
    NetImpl() { drop = register_module("drop", torch::nn::Dropout(1.0)); }
    at::Tensor forward(at::Tensor x) { return drop(x) + 1; }
    torch::nn::Dropout drop{nullptr};
  };
  auto net = std::make_shared<NetImpl>();
  auto f = compile(net);
  at::Tensor x = torch::ones({3});
  net->drop->eval();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(x), x + 1));
  net->drop->train();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(x), torch::ones({3})));
}

TEST_F(CompileModule, RandomNumbersFollowEagersStream) {
  torch::nn::Dropout drop(0.5);
  auto f = compile(drop);
  at::Tensor x = torch::ones({64});
  for (int i = 0; i < 3; ++i) {
    torch::manual_seed(7);
    at::Tensor got = f(x), got_next = f(x);
    torch::manual_seed(7);
    at::Tensor want = drop(x), want_next = drop(x);
    EXPECT_TRUE(same(got, want));
    EXPECT_TRUE(same(got_next, want_next));
  }
}

TEST_F(CompileModule, TuplesOfTuplesComeBack) {
  torch::nn::LSTM lstm(4, 6);
  lstm->eval();
  auto f = compile(lstm);
  for (int i = 0; i < 2; ++i) {
    at::Tensor x = torch::randn({5, 2, 4});
    auto [out, state] = f(x);
    auto [want, want_state] = lstm(x);
    EXPECT_TRUE(same(out, want, 1e-5));
    EXPECT_TRUE(same(std::get<0>(state), std::get<0>(want_state), 1e-5));
    EXPECT_TRUE(same(std::get<1>(state), std::get<1>(want_state), 1e-5));
  }
}

TEST(ModuleGrad, TrainingGivesEagersGradients) {
  Mlp mlp;
  auto f = compile(mlp);
  at::Tensor x = torch::randn({4, 8});
  {
    torch::NoGradGuard no_grad;
    f(x);
    f(x);
  }
  mlp->zero_grad();
  f(x).sum().backward();
  std::vector<at::Tensor> got;
  for (auto& p : mlp->parameters()) got.push_back(p.grad().clone());
  mlp->zero_grad();
  mlp->forward(x).sum().backward();
  size_t i = 0;
  for (auto& p : mlp->parameters()) EXPECT_TRUE(same(got[i++], p.grad(), 1e-6));
  EXPECT_EQ(f.explain().generic_calls, 1);
}

TEST_F(CompileModule, TheModuleLivesAsLongAsItsCompiledForm) {
  std::weak_ptr<MlpImpl> watch;
  {
    auto mlp = std::make_shared<MlpImpl>();
    watch = mlp;
    auto f = compile(mlp);
    mlp.reset();
    f(torch::randn({2, 8}));
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace fxjit
