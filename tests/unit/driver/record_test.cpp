// record(): unmodified torch::nn modules and functions over tensors as FX graphs.
#include "fxjit/record.h"

#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "fxjit/compile.h"
#include "fxjit/fx/interpreter.h"
#include "helpers.h"

namespace fxjit {
namespace {

using testing::same;

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int64_t channels) {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm2d(channels));
  }
  at::Tensor forward(at::Tensor x) { return torch::relu(norm(conv(x))) + x; }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    layer1 = register_module("layer1", torch::nn::Sequential(Block(3), Block(3)));
    fc = register_module("fc", torch::nn::Linear(3, 5));
    act = register_module("act", torch::nn::ReLU());
  }
  at::Tensor forward(at::Tensor x) { return fc(act(layer1->forward(x)).mean(at::IntArrayRef{2, 3})); }
  torch::nn::Sequential layer1{nullptr};
  torch::nn::Linear fc{nullptr};
  torch::nn::ReLU act{nullptr};
};
TORCH_MODULE(Net);

std::vector<std::string> targets(const fx::Graph& g, fx::Opcode op) {
  std::vector<std::string> out;
  for (const fx::Node* n : g.nodes())
    if (n->op() == op)
      out.emplace_back(op == fx::Opcode::CallFunction ? n->callable().qualified_name() : n->target_str());
  return out;
}

size_t count(const fx::Graph& g, const char* op) {
  const auto all = targets(g, fx::Opcode::CallFunction);
  return static_cast<size_t>(std::count(all.begin(), all.end(), op));
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(to_string(e.kind())) + ": " + e.what();
  }
  return "no error";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class Record : public ::testing::Test {
 protected:
  // Interpreter, the module itself (twice: recorded, compiled) and compile() give what eager gives.
  template <class F>
  void expect_equal(const fx::GraphModuleRef& gm, F&& eager, const std::vector<at::Tensor>& in, double tolerance) {
    std::vector<fx::Value> values;
    for (const at::Tensor& t : in) values.push_back(to_value(t));
    const at::Tensor want = eager();
    EXPECT_TRUE(same(to_tensor(fx::Interpreter(*gm).run(values)), want, tolerance));
    auto f = compile(gm);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(same(to_tensor(gm->call(values, {})), want, tolerance));
      EXPECT_TRUE(same(f.call(in).at(0), want, tolerance));
    }
  }
  torch::NoGradGuard no_grad;
};

TEST_F(Record, AModuleIsAGraphOverItsParametersPaths) {
  Net net;
  net->eval();
  const at::Tensor x = torch::randn({2, 3, 8, 8});
  const fx::GraphModuleRef gm = record(net, {x});
  EXPECT_EQ(gm->class_name(), "Net");
  const auto read = targets(gm->graph(), fx::Opcode::GetAttr);
  ASSERT_EQ(read.size(), 14u) << gm->graph().to_string();
  EXPECT_EQ(read[0], "layer1.0.conv.weight");
  EXPECT_EQ(read[4], "layer1.0.norm.running_mean");
  EXPECT_EQ(read[13], "fc.bias");
  EXPECT_EQ(gm->attributes_module()->attribute_kind("layer1"), fx::AttributeKind::Module);
  EXPECT_EQ(to_tensor(fx::find_attribute(*gm, "fc.weight")).unsafeGetTensorImpl(),
            net->fc->weight.unsafeGetTensorImpl());
  expect_equal(gm, [&] { return net(x); }, {x}, 1e-5);
  net->fc->weight.mul_(2);  // shared, not copied
  expect_equal(gm, [&] { return net(x); }, {x}, 1e-5);
}

TEST_F(Record, TheGraphIsTheUsersToTransform) {
  Net net;
  net->eval();
  const at::Tensor x = torch::randn({2, 3, 8, 8});
  const fx::GraphModuleRef gm = record(net, {x});
  const auto relus = gm->graph().find_nodes(fx::Opcode::CallFunction, aten("aten::relu"));
  ASSERT_EQ(relus.size(), 3u) << gm->graph().to_string();
  for (fx::Node* n : relus) n->set_target(aten("aten::sigmoid"));
  gm->graph().lint();
  gm->recompile();
  EXPECT_EQ(count(gm->graph(), "aten::sigmoid"), 3u);
  EXPECT_FALSE(at::allclose(to_tensor((*gm)({x})), net(x)));
}

TEST_F(Record, LinearIsRecognised) {
  torch::nn::Linear with(4, 3), without(torch::nn::LinearOptions(4, 3).bias(false));
  for (const at::Tensor& x : {torch::randn({5, 4}), torch::randn({2, 5, 4}), torch::randn({4})}) {
    const fx::GraphModuleRef a = record(with, {x}), b = record(without, {x});
    for (const auto& gm : {a, b}) {
      EXPECT_EQ(targets(gm->graph(), fx::Opcode::CallFunction), std::vector<std::string>{"aten::linear"})
          << gm->graph().to_string();
    }
    expect_equal(a, [&] { return with(x); }, {x}, 1e-6);
    expect_equal(b, [&] { return without(x); }, {x}, 1e-6);
  }
  const fx::GraphModuleRef plain = record(with, {torch::randn({5, 4})}, {.recognise = false});
  EXPECT_EQ(targets(plain->graph(), fx::Opcode::CallFunction), (std::vector<std::string>{"aten::t", "aten::addmm"}));
}

TEST_F(Record, WhatOnlyLooksLikeLinearStays) {
  const at::Tensor w = torch::randn({3, 4}), b = torch::randn({3}), m = torch::randn({5, 3}), x = torch::randn({5, 4});
  const auto scaled =
      record([](at::Tensor x, at::Tensor w, at::Tensor b) { return torch::addmm(b, x, w.t(), 2); }, {x, w, b});
  EXPECT_EQ(count(scaled->graph(), "aten::linear"), 0u);
  const auto matrix =
      record([](at::Tensor x, at::Tensor w, at::Tensor m) { return torch::addmm(m, x, w.t()); }, {x, w, m});
  EXPECT_EQ(count(matrix->graph(), "aten::linear"), 0u);
  expect_equal(matrix, [&] { return torch::addmm(m, x, w.t()); }, {x, w, m}, 1e-6);
}

at::Tensor attend(at::Tensor q, at::Tensor k, at::Tensor v) {
  return torch::matmul(torch::softmax(torch::matmul(q, k.transpose(-2, -1)) / 2.0, -1), v);
}

TEST_F(Record, AttentionIsRecognised) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 3, 6, 4}, {3, 6, 4}}) {
    const std::vector<at::Tensor> in{torch::randn(shape), torch::randn(shape), torch::randn(shape)};
    const auto gm = record(attend, in);
    EXPECT_EQ(count(gm->graph(), "aten::scaled_dot_product_attention"), 1u) << gm->graph().to_string();
    EXPECT_EQ(count(gm->graph(), "aten::softmax.int"), 0u);
    expect_equal(gm, [&] { return attend(in[0], in[1], in[2]); }, in, 1e-5);
  }
  // As torch::nn::MultiheadAttention does it: a scaled query, bmm, inactive dropout.
  const auto as_bmm = [](at::Tensor q, at::Tensor k, at::Tensor v) {
    at::Tensor weights = torch::nn::functional::softmax(torch::bmm(q * 0.5, k.transpose(1, 2)), -1);
    return torch::bmm(torch::dropout(weights, 0.1, false), v);
  };
  const std::vector<at::Tensor> in{torch::randn({3, 6, 4}), torch::randn({3, 7, 4}), torch::randn({3, 7, 5})};
  const auto gm = record(as_bmm, in);
  EXPECT_EQ(count(gm->graph(), "aten::scaled_dot_product_attention"), 1u) << gm->graph().to_string();
  expect_equal(gm, [&] { return as_bmm(in[0], in[1], in[2]); }, in, 1e-5);
}

TEST_F(Record, MaskedAttentionIsRecognisedOnRequest) {
  const auto added = [](at::Tensor q, at::Tensor k, at::Tensor v, at::Tensor mask) {
    return torch::matmul(torch::softmax(torch::matmul(q, k.transpose(-2, -1)) / 2.0 + mask, -1), v);
  };
  const auto filled = [](at::Tensor q, at::Tensor k, at::Tensor v, at::Tensor mask) {
    const double low = -std::numeric_limits<double>::infinity();
    return torch::matmul(torch::softmax(torch::matmul(q, k.transpose(-2, -1)).masked_fill(mask, low), -1), v);
  };
  const auto r = [] { return torch::randn({2, 3, 6, 4}); };
  std::vector<at::Tensor> in{r(), r(), r(), torch::randn({6, 6})};
  EXPECT_EQ(count(record(added, in)->graph(), "aten::scaled_dot_product_attention"), 0u);
  const auto a = record(added, in, {.masked_attention = true});
  EXPECT_EQ(count(a->graph(), "aten::scaled_dot_product_attention"), 1u) << a->graph().to_string();
  expect_equal(a, [&] { return added(in[0], in[1], in[2], in[3]); }, in, 1e-5);
  in[3] = torch::ones({6, 6}, at::kBool).triu(1);
  const auto b = record(filled, in, {.masked_attention = true});
  EXPECT_EQ(count(b->graph(), "aten::scaled_dot_product_attention"), 1u) << b->graph().to_string();
  expect_equal(b, [&] { return filled(in[0], in[1], in[2], in[3]); }, in, 1e-5);
}

TEST_F(Record, WeightsThatAreAResultKeepAttentionApart) {
  const auto with_weights = [](at::Tensor q, at::Tensor k, at::Tensor v) {
    at::Tensor weights = torch::softmax(torch::matmul(q, k.transpose(-2, -1)), -1);
    return std::make_pair(torch::matmul(weights, v), weights);
  };
  const auto r = [] { return torch::randn({2, 3, 6, 4}); };
  const auto gm = record(with_weights, {r(), r(), r()});
  EXPECT_EQ(count(gm->graph(), "aten::scaled_dot_product_attention"), 0u);
}

TEST_F(Record, WritesAreRecordedAsTheyWere) {
  Block block(3);  // in training: the buffers are updated
  const at::Tensor x = torch::randn({2, 3, 4, 4});
  const fx::GraphModuleRef gm = record(block, {x});
  EXPECT_EQ(count(gm->graph(), "aten::add_.Scalar"), 1u) << gm->graph().to_string();
  EXPECT_EQ(block->norm->num_batches_tracked.item<int64_t>(), 1);
  (*gm)({x});
  EXPECT_EQ(block->norm->num_batches_tracked.item<int64_t>(), 2);
  const auto writes = [](at::Tensor x) {
    at::Tensor y = x * 2;
    y.select(0, 0).add_(1);
    return y;
  };
  const auto g = record(writes, {x});
  expect_equal(g, [&] { return writes(x); }, {x}, 0);
}

// ---- Leaves

TEST_F(Record, SubmodulesAreLeavesOnRequest) {
  Net net;
  net->eval();
  const at::Tensor x = torch::randn({2, 3, 8, 8});
  const fx::GraphModuleRef gm = record(net, {x}, {.leaves = {"layer1.1", "fc"}});
  EXPECT_EQ(targets(gm->graph(), fx::Opcode::CallModule), (std::vector<std::string>{"layer1.1", "fc"}))
      << gm->graph().to_string();
  for (const std::string& path : targets(gm->graph(), fx::Opcode::GetAttr)) EXPECT_TRUE(path.starts_with("layer1.0."));
  const auto leaf = fx::ref_cast<fx::GraphModule>(fx::find_attribute(*gm, "layer1.1"));
  ASSERT_TRUE(leaf);
  EXPECT_EQ(targets(leaf->graph(), fx::Opcode::GetAttr)[0], "conv.weight");
  expect_equal(gm, [&] { return net(x); }, {x}, 1e-5);
  const fx::GraphModuleRef by_class =
      record(net, {x}, {.is_leaf = [](std::string_view, std::string_view c) { return c.ends_with("Conv2dImpl"); }});
  EXPECT_EQ(targets(by_class->graph(), fx::Opcode::CallModule),
            (std::vector<std::string>{"layer1.0.conv", "layer1.1.conv"}));
  expect_equal(by_class, [&] { return net(x); }, {x}, 1e-5);
}

struct CrossedImpl : torch::nn::Module {
  CrossedImpl() {
    a = register_module("a", torch::nn::Linear(4, 4));
    b = register_module("b", torch::nn::Linear(4, 4));
  }
  at::Tensor forward(at::Tensor x) { return a(b(a(x))); }
  torch::nn::Linear a{nullptr}, b{nullptr};
};
TORCH_MODULE(Crossed);

TEST_F(Record, LeavesThatCannotBeSayWhy) {
  Net net;
  net->eval();
  const at::Tensor x = torch::randn({2, 3, 8, 8});
  EXPECT_HAS(message_of([&] { record(net, {x}, {.leaves = {"layer2"}}); }),
             "NameError: record: the module has no submodule 'layer2'");
  EXPECT_HAS(message_of([&] { record(net, {x}, {.leaves = {"act"}}); }),
             "TraceError: no call uses a parameter or buffer of act");
  EXPECT_HAS(message_of([&] { record(Crossed(), {torch::randn({2, 4})}, {.leaves = {"a"}}); }),
             "which is another module's");
  EXPECT_HAS(message_of([&] { record([](at::Tensor t) { return t; }, {x}, {.leaves = {"a"}}); }), "ValueError");
}

// ---- Two examples

TEST_F(Record, TwoExamplesGiveAGraphForAllSizes) {
  const auto fn = [](at::Tensor x, at::Tensor w) {
    at::Tensor heads = x.view({x.size(0), x.size(1), 2, x.size(2) / 2}).transpose(1, 2);
    at::Tensor flat = heads.reshape({x.size(0) * 2, x.size(1), -1}) + torch::ones({x.size(1), 1});
    return torch::matmul(flat, w).reshape({x.size(0), -1}).narrow(1, 0, x.size(1) + 2);
  };
  const auto x = [](int64_t n, int64_t t) { return torch::randn({n, t, 8}); };
  const at::Tensor w = torch::randn({4, 3});
  const fx::GraphModuleRef gm = record(fn, {x(2, 5), w}, {.other = {x(3, 7), w}});
  EXPECT_FALSE(targets(gm->graph(), fx::Opcode::CallMethod).empty()) << gm->graph().to_string();
  for (auto [n, t] : {std::pair{2, 5}, {3, 7}, {4, 6}, {1, 9}}) {
    const std::vector<at::Tensor> in{x(n, t), w};
    expect_equal(gm, [&] { return fn(in[0], in[1]); }, in, 1e-5);
  }
}

TEST_F(Record, WhatFollowsFromNoSizeSaysWhy) {
  const at::Tensor a = torch::randn({4, 6}), b = torch::randn({8, 10});
  const auto squares = [](at::Tensor x) { return torch::zeros({x.size(0) * x.size(0) + 1}) + x.sum(); };
  EXPECT_HAS(message_of([&] { record(squares, {a}, {.other = {b}}); }), "follows from no size");
  const auto branches = [](at::Tensor x) { return x.size(0) > 4 ? x.sin().cos() : x.sin(); };
  EXPECT_HAS(message_of([&] { record(branches, {a}, {.other = {b}}); }), "branches on sizes");
  const auto swaps = [](at::Tensor x) { return x.size(0) > 4 ? x.sin() : x.cos(); };
  EXPECT_HAS(message_of([&] { record(swaps, {a}, {.other = {b}}); }), "is aten::sin for the second example");
  const auto scaled = [](at::Tensor x) { return x * (1.0 / static_cast<double>(x.size(0))); };
  EXPECT_HAS(message_of([&] { record(scaled, {a}, {.other = {b}}); }), "the argument 'other' of aten::mul.Scalar");
  const auto zeros = [](at::Tensor x) { return torch::zeros({x.size(1)}) + x.sum(); };
  EXPECT_HAS(message_of([&] { record(zeros, {torch::randn({4, 4})}, {.other = {torch::randn({5, 5})}}); }),
             "two sizes of one input");
}

// ---- What no graph can hold

TEST_F(Record, ObstaclesAreNamed) {
  const at::Tensor x = torch::randn({4});
  EXPECT_HAS(message_of([&] { record([](at::Tensor x) { return x * x.sum().item<double>(); }, {x}); }),
             "TraceError: aten::item (call 1 of the record) reads data of a tensor");
  EXPECT_HAS(message_of([&] { record([](at::Tensor x) { return x.nonzero(); }, {x}); }), "size depends on data");
  const at::Tensor captured = torch::randn({4});
  const auto fn = [&](at::Tensor x) { return x + captured; };
  EXPECT_HAS(message_of([&] { record(fn, {x}); }), "a tensor of unknown origin");
  const auto gm = record(fn, {x}, {.constants = true});
  EXPECT_EQ(targets(gm->graph(), fx::Opcode::GetAttr), std::vector<std::string>{"_tensor_constant0"});
  expect_equal(gm, [&] { return x + captured; }, {x}, 0);
  EXPECT_HAS(message_of([&] { record(fn, {x, x}); }), "TypeError: record: function takes 1 tensors, the example has 2");
  EXPECT_HAS(message_of([&] { record([](at::Tensor a, at::Tensor b) { return a + b; }, {x, x}); }), "given twice");
  EXPECT_HAS(message_of([&] { record([](at::Tensor x) { return x + 1; }, {x}, {.names = {"a", "b"}}); }),
             "2 names for");
}

TEST_F(Record, ResultsKeepTheirStructure) {
  const at::Tensor x = torch::randn({4, 2});
  const auto fn = [](at::Tensor x) {
    return std::make_tuple(x.sin(), std::vector<at::Tensor>{x, x.cos()}, int64_t{3});
  };
  const auto gm = record(fn, {x}, {.names = {"data"}});
  const fx::Value v = (*gm)({x});
  ASSERT_EQ(v.size(), 3u);
  EXPECT_TRUE(same(to_tensor(v[0]), x.sin()));
  EXPECT_EQ(to_tensor(v[1][0]).unsafeGetTensorImpl(), x.unsafeGetTensorImpl());
  EXPECT_EQ(v[2].as_int(), 3);
  EXPECT_EQ(targets(gm->graph(), fx::Opcode::Placeholder), std::vector<std::string>{"data"});
}

}  // namespace
}  // namespace fxjit
