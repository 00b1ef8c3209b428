#include "torch/dnnl_linear.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "fxjit/fx/graph.h"
#include "runtime/libs/dnnl/linear.h"
#include "torch/aten_call.h"
#include "torch/host_table.h"

namespace fxjit::torch_ {
namespace {

// linear over three inputs in slots 0 to 2, result in slot 3.
fxjit_status forward(fxjit_frame* f, const fxjit_value* in, const int64_t*, fxjit_value* out) {
  for (int i = 0; i < 3; ++i) f->slots[i] = in[i];
  if (fxjit_status s = f->table->call(f, 0)) return s;
  out[0] = f->slots[3];
  f->slots[3] = nullptr;
  return FXJIT_OK;
}

class Linear : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* problem = fxjit_dnnl_problem()) GTEST_SKIP() << problem;
    bind(true);
  }
  void bind(bool bias) {
    auto graph = fx::Graph::create();
    fx::Node* nodes[3] = {graph->placeholder("x"), graph->placeholder("w"), graph->placeholder("b")};
    fx::Node* call =
        graph->call_function(fx::make_ref<AtenCallable>(*find_operator("aten::linear")),
                             fx::Argument::tuple({nodes[0], nodes[1], bias ? fx::Argument(nodes[2]) : fx::Argument()}));
    auto slot_of = [&](const fx::Node* n) { return static_cast<int32_t>(std::find(nodes, nodes + 3, n) - nodes); };
    auto bound = bind_dnnl_linear(*call, {slot_of, {}}, {3});
    ASSERT_TRUE(bound.ok()) << bound.reason();
    program_.calls.clear();
    program_.calls.push_back(std::move(bound).value());
    program_.num_inputs = 3;
    program_.num_slots = 4;
  }
  at::Tensor run(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) const {
    c10::TensorImpl* in[3] = {x.unsafeGetTensorImpl(), w.unsafeGetTensorImpl(), b.unsafeGetTensorImpl()};
    c10::TensorImpl* out[1];
    run_specialised(&forward, program_, in, nullptr, out, host_state());
    return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim(out[0]));
  }
  // Error against float64, of ours and of eager's.
  void expect_as_good_as_eager(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    at::Tensor exact =
        at::linear(x.to(c10::ScalarType::Double), w.to(c10::ScalarType::Double), b.to(c10::ScalarType::Double));
    at::Tensor eager = at::linear(x, w, b), ours = run(x, w, b);
    ASSERT_EQ(ours.sizes(), eager.sizes());
    ASSERT_EQ(ours.strides(), eager.strides());
    ASSERT_EQ(ours.scalar_type(), eager.scalar_type());
    double bound = 2 * eager.sub(exact).abs().max().item<double>() + 4e-7 * exact.abs().max().item<double>();
    EXPECT_LE(ours.sub(exact).abs().max().item<double>(), bound);
  }
  HostProgram program_;
  c10::AutoGradMode no_grad_{false};
};

TEST_F(Linear, IsAsGoodAsEager) {
  EXPECT_EQ(program_.calls[0]->name(), "oneDNN linear");
  for (int64_t m : {1, 3, 64, 200}) {
    at::Tensor w = at::randn({40, 70}), b = at::randn({40});
    expect_as_good_as_eager(at::randn({m, 70}), w, b);
    expect_as_good_as_eager(at::randn({2, m, 70}), w, b);
  }
  expect_as_good_as_eager(at::randn({70}), at::randn({40, 70}), at::randn({40}));
}

TEST_F(Linear, WithoutBias) {
  bind(false);
  at::Tensor x = at::randn({5, 30}), w = at::randn({20, 30});
  EXPECT_TRUE(run(x, w, x).allclose(at::linear(x, w), 1e-5, 1e-5));
}

TEST_F(Linear, NoticesThatTheWeightChanged) {
  at::Tensor x = at::randn({5, 300}), w = at::randn({200, 300}), b = at::randn({200});
  expect_as_good_as_eager(x, w, b);
  w.mul_(2);  // version
  expect_as_good_as_eager(x, w, b);
  auto version = w._version();
  float* data = w.mutable_data_ptr<float>();
  for (int64_t i = 0; i < w.numel(); ++i) data[i] *= 3;  // behind the dispatcher's back
  ASSERT_EQ(w._version(), version);
  expect_as_good_as_eager(x, w, b);
  expect_as_good_as_eager(x, at::randn({200, 300}), b);  // another tensor
  w.set_data(at::randn({200, 300}));
  expect_as_good_as_eager(x, w, b);
}

TEST_F(Linear, WhatTheLibraryHasNoCodeForGoesToAten) {
  at::Tensor x = at::randn({6, 30}), w = at::randn({20, 30}), b = at::randn({20});
  auto same = [&](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return run(x, w, b).equal(at::linear(x, w, b));
  };
  EXPECT_TRUE(same(at::randn({30, 6}).t(), w, b));
  EXPECT_TRUE(same(x, at::randn({30, 20}).t(), b));
  EXPECT_TRUE(same(at::randn({0, 30}), w, b));
  EXPECT_TRUE(same(x.to(c10::ScalarType::Double), w.to(c10::ScalarType::Double), b.to(c10::ScalarType::Double)));
  EXPECT_THROW(run(at::randn({6, 31}), w, b), c10::Error);
  c10::AutoGradMode grad(true);
  w.requires_grad_();
  EXPECT_TRUE(run(x, w, b).requires_grad());
}

TEST_F(Linear, InSeveralThreadsWhileTheWeightIsReplaced) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      c10::AutoGradMode off(false);
      at::Tensor x = at::randn({4 + t, 64}), b = at::randn({32});
      for (int i = 0; i < 40; ++i) {
        at::Tensor w = at::randn({32, 64});
        EXPECT_TRUE(run(x, w, b).allclose(at::linear(x, w, b), 1e-4, 1e-4));
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST_F(Linear, InAForkChild) {
  at::Tensor x = at::randn({2, 30}), w = at::randn({20, 30}), b = at::randn({20});
  run(x, w, b);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    at::set_num_threads(1);  // with more, eager's linear hangs too: libgomp's pool is gone
    _exit(run(x, w, b).numel() == 40 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(LinearBinding, OtherTypesAreRefusedWithTheReason) {
  if (const char* why = fxjit_dnnl_problem()) GTEST_SKIP() << why;
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  auto type = std::make_shared<TensorType>();
  type->dtype = DType::BFloat16;
  x->set_tensor_type(type);
  fx::Node* call = graph->call_function(fx::make_ref<AtenCallable>(*find_operator("aten::linear")),
                                        fx::Argument::tuple({x, x, fx::Argument()}));
  auto slot_of = [](const fx::Node*) { return 0; };
  auto bound = bind_dnnl_linear(*call, {slot_of, {}}, {3});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.reason(), "oneDNN runs linear in f32 only, not bf16");
}

TEST(SampleChecksum, SeesFirstLastAndOrder) {
  std::vector<float> a(1000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  uint64_t base = sample_checksum(a.data(), 1000);
  auto changed = [&](size_t i) {
    std::vector<float> c = a;
    c[i] += 0.5f;
    return sample_checksum(c.data(), 1000) != base;
  };
  EXPECT_TRUE(changed(0));
  EXPECT_TRUE(changed(999));
  std::vector<float> turned(a.rbegin(), a.rend());
  EXPECT_NE(sample_checksum(turned.data(), 1000), base);
  EXPECT_NE(sample_checksum(a.data(), 1), sample_checksum(a.data() + 1, 1));
}

}  // namespace
}  // namespace fxjit::torch_
