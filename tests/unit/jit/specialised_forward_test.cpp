#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "fxjit/errors.h"
#include "specialised_host.h"
#include "typed_graphs.h"

namespace fxjit {
namespace {

using fx::Argument;
using fx::Node;
using test::buffer;
using test::extent;
using test::FakeTensor;
using test::SpecialisedHost;
using test::TensorPtr;
using test::TypedGraph;

// What kernels saw, for tests that look at launches.
struct NotedLaunch {
  int64_t begin, end;
  std::vector<int64_t> extents;
  int64_t blocks;
  void* first;
};
std::vector<NotedLaunch> noted;

// Kernels of one axis; one unit is the whole of it unless the extent is above the block.
void noted_add_kernel(int64_t begin, int64_t end, void* ctx) {
  noted.push_back({begin, end, {extent(ctx)}, static_cast<fxjit_launch*>(ctx)->blocks, buffer(ctx, 0)});
  for (int64_t i = begin * 4096; i < std::min(end * 4096, extent(ctx)); ++i) {
    buffer(ctx, 2)[i] = buffer(ctx, 0)[i] + buffer(ctx, 1)[i];
  }
}
void noted_double_kernel(int64_t begin, int64_t end, void* ctx) {
  noted.push_back({begin, end, {extent(ctx)}, static_cast<fxjit_launch*>(ctx)->blocks, buffer(ctx, 0)});
  for (int64_t i = begin * 4096; i < std::min(end * 4096, extent(ctx)); ++i) buffer(ctx, 1)[i] = 2 * buffer(ctx, 0)[i];
}

TensorPtr counting_tensor(std::vector<int64_t> sizes, float first = 1, std::vector<int64_t> strides = {}) {
  auto t = std::make_unique<FakeTensor>(DType::Float32, std::move(sizes), std::move(strides));
  for (size_t i = 0; i < t->memory.size() / 4; ++i) t->data<float>()[i] = first + static_cast<float>(i);
  return t;
}

class SpecialisedForward : public testing::Test {
 protected:
  void SetUp() override { noted.clear(); }
  void TearDown() override { EXPECT_EQ(FakeTensor::live, 0); }
};

// x + y over [n]: with a symbol for n, or for 16 elements.
struct Addition {
  TypedGraph g;
  Node* sum;
  explicit Addition(bool symbolic) {
    const Dim n = symbolic ? g.size(0, 0, 16) : g.env->constant(16);
    auto t = g.type(DType::Float32, {n});
    Node* x = g.input("x", t);
    Node* y = g.input("y", t);
    sum = g.launch(g.kernel("fused_add", 2, {t}, n), {x, y});
    g.graph->output(sum);
  }
  SpecialisedHost host() {
    SpecialisedHost h(g.graph, g.env, g.inputs);
    h.kernels[sum] = {noted_add_kernel, nullptr};
    return h;
  }
};

TEST_F(SpecialisedForward, RunsAKernel) {
  Addition a(false);
  SpecialisedHost host = a.host();
  auto x = counting_tensor({16}, 1), y = counting_tensor({16}, 100);
  ASSERT_EQ(host.run({x.get(), y.get()}), FXJIT_OK);
  ASSERT_EQ(host.outputs.size(), 1u);
  EXPECT_EQ(host.outputs[0]->data<float>()[3], 107);
  EXPECT_EQ(host.outputs[0]->geometry, (std::vector<int64_t>{16, 1}));
  EXPECT_EQ(host.ran, (std::vector<std::string>{"empty"}));
  EXPECT_EQ(host.left_behind, 0);
  EXPECT_NE(host.text().find("@fused_add"), std::string::npos) << host.text();
  host.outputs.clear();
}

TEST_F(SpecialisedForward, TensorsOfOtherKindsAreRefusedAndNothingIsDone) {
  Addition a(false);
  SpecialisedHost host = a.host();
  auto x = counting_tensor({16}), y = counting_tensor({16});
  auto refused = [&](FakeTensor* p, FakeTensor* q) {
    const bool guard = host.run({p, q}) == FXJIT_GUARD;
    return guard && host.ran.empty() && noted.empty();
  };
  auto other_size = counting_tensor({17}), two_dims = counting_tensor({4, 4}), strided = counting_tensor({16}, 1, {2});
  EXPECT_TRUE(refused(other_size.get(), y.get()));
  EXPECT_TRUE(refused(x.get(), other_size.get()));
  EXPECT_TRUE(refused(two_dims.get(), y.get()));
  EXPECT_TRUE(refused(x.get(), strided.get()));
  auto changed = [&](auto change) {
    auto z = counting_tensor({16});
    change(*z);
    return refused(z.get(), y.get()) && refused(x.get(), z.get());
  };
  EXPECT_TRUE(changed([](FakeTensor& t) { t.dtype = static_cast<uint16_t>(DType::Float16); }));
  EXPECT_TRUE(changed([](FakeTensor& t) { t.dtype |= 0x100; }));
  EXPECT_TRUE(changed([](FakeTensor& t) { t.key_set |= uint64_t{1} << 40; }));
  EXPECT_TRUE(changed([](FakeTensor& t) { t.device_type = 1; }));
  EXPECT_TRUE(changed([](FakeTensor& t) { t.rank = uint64_t{1} << 32 | 1; }));
  EXPECT_EQ(host.run({x.get(), y.get()}), FXJIT_OK);
  host.outputs.clear();
}

TEST_F(SpecialisedForward, SymbolicSizesNeedNoOtherCode) {
  Addition a(true);
  SpecialisedHost host = a.host();
  for (const int64_t n : {2, 16, 1000, 5000, 100000}) {
    auto x = counting_tensor({n}, 1), y = counting_tensor({n}, 2);
    ASSERT_EQ(host.run({x.get(), y.get()}), FXJIT_OK) << n;
    EXPECT_EQ(host.outputs[0]->data<float>()[n - 1], static_cast<float>(2 * n + 1));
    EXPECT_EQ(noted.back().extents[0], n);
    EXPECT_EQ(noted.back().blocks, (n + 4095) / 4096);
    EXPECT_EQ(noted.back().end, (n + 4095) / 4096);
    host.outputs.clear();
  }
  auto x = counting_tensor({5}), y = counting_tensor({6}), one = counting_tensor({1}), none = counting_tensor({0});
  EXPECT_EQ(host.run({x.get(), y.get()}), FXJIT_GUARD) << "both have the size s0";
  EXPECT_EQ(host.run({one.get(), one.get()}), FXJIT_GUARD) << "sizes 0 and 1 are specialisations of their own";
  EXPECT_EQ(host.run({none.get(), none.get()}), FXJIT_GUARD);
}

TEST_F(SpecialisedForward, StrideOfADimensionOfOneElementIsNotLookedAt) {
  TypedGraph g;
  auto t = g.type(DType::Float32, g.constants({1, 8}));
  Node* x = g.input("x", t);
  Node* k = g.launch(g.kernel("k", 1, {t}, g.env->constant(8)), {x});
  g.graph->output(k);
  SpecialisedHost host(g.graph, g.env, g.inputs);
  host.kernels[k] = {noted_double_kernel, nullptr};
  auto odd = counting_tensor({1, 8}, 1, {77, 1}), gaps = counting_tensor({1, 8}, 1, {8, 2});
  EXPECT_EQ(host.run({odd.get()}), FXJIT_OK);
  EXPECT_EQ(host.run({gaps.get()}), FXJIT_GUARD);
  host.outputs.clear();
}

TEST_F(SpecialisedForward, SizesBeyondTheInlineOnesAreReadOutside) {
  TypedGraph g;
  const Dim n = g.size(0, 4, 6);  // rank 5: the fake tensor keeps 3 inline
  auto t = g.type(DType::Float32, {g.env->constant(2), g.env->constant(3), g.env->constant(4), g.env->constant(5), n});
  Node* x = g.input("x", t);
  Node* k = g.launch(g.kernel("k", 1, {t}, g.env->product(t->sizes)), {x});
  g.graph->output(k);
  SpecialisedHost host(g.graph, g.env, g.inputs);
  host.kernels[k] = {noted_double_kernel, nullptr};
  auto right = counting_tensor({2, 3, 4, 5, 9}), wrong = counting_tensor({2, 3, 4, 6, 9}),
       transposed = counting_tensor({2, 3, 4, 5, 9}, 1, {540, 180, 45, 1, 5});
  EXPECT_EQ(host.run({right.get()}), FXJIT_OK);
  EXPECT_EQ(noted.back().extents[0], 1080);
  EXPECT_EQ(host.run({wrong.get()}), FXJIT_GUARD);
  EXPECT_EQ(host.run({transposed.get()}), FXJIT_GUARD);
  host.outputs.clear();
}

TEST_F(SpecialisedForward, HostWordsAreGuarded) {
  Addition a(false);
  a.g.inputs.words = {0x123456789abcdef0, 7};
  SpecialisedHost host = a.host();
  auto x = counting_tensor({16});
  host.words = {0x123456789abcdef0, 7};
  EXPECT_EQ(host.run({x.get(), x.get()}), FXJIT_OK);
  host.words = {0x123456789abcdef0, 6};
  EXPECT_EQ(host.run({x.get(), x.get()}), FXJIT_GUARD);
  host.words = {0x923456789abcdef0, 7};
  EXPECT_EQ(host.run({x.get(), x.get()}), FXJIT_GUARD);
  host.outputs.clear();
}

TEST_F(SpecialisedForward, RequiresGradIsAskedWhereItIsGuarded) {
  Addition a(false);
  a.g.inputs.inputs[0].requires_grad = false;
  a.g.inputs.inputs[1].requires_grad = true;
  SpecialisedHost host = a.host();
  auto plain = counting_tensor({16}), leaf = counting_tensor({16});
  leaf->autograd = leaf.get();
  EXPECT_EQ(host.run({plain.get(), leaf.get()}), FXJIT_OK);
  EXPECT_EQ(host.run({plain.get(), plain.get()}), FXJIT_GUARD);
  EXPECT_EQ(host.run({leaf.get(), leaf.get()}), FXJIT_GUARD);
  host.outputs.clear();
}

TEST_F(SpecialisedForward, InputsThatMustNotShareAStorage) {
  Addition a(false);
  a.g.inputs.apart = {{0, 1}};
  SpecialisedHost host = a.host();
  auto x = counting_tensor({16}), y = counting_tensor({16});
  EXPECT_EQ(host.run({x.get(), y.get()}), FXJIT_OK);
  EXPECT_EQ(host.run({x.get(), x.get()}), FXJIT_GUARD);
  host.outputs.clear();
}

TEST_F(SpecialisedForward, NumbersAreBakedOrArguments) {
  TypedGraph g;
  auto t = g.type(DType::Float32, g.constants({4}));
  Node* x = g.input("x", t);
  g.number("mode", 3);
  g.number("alpha");
  auto call = g.kernel("scale", 1, {t}, g.env->constant(4));
  call->kernel.scalars = {DType::Float64, DType::Float64, DType::Int64};
  call->scalars.resize(3);
  call->scalars[0] = {kernel::ScalarBinding::Input, 0, 2, {}};
  call->scalars[1] = {kernel::ScalarBinding::Size, 0, -1, g.env->constant(5)};
  call->scalars[2] = {kernel::ScalarBinding::Constant, 42, -1, {}};
  Node* k = g.launch(call, {x});
  g.graph->output(k);
  SpecialisedHost host(g.graph, g.env, g.inputs);
  host.kernels[k] = {[](int64_t, int64_t, void* ctx) {
                       const uint64_t* s = static_cast<fxjit_launch*>(ctx)->scalars;
                       const double factor = std::bit_cast<double>(s[0]) + std::bit_cast<double>(s[1]);
                       for (int i = 0; i < 4; ++i) {
                         buffer(ctx, 1)[i] = buffer(ctx, 0)[i] * static_cast<float>(factor) + static_cast<float>(s[2]);
                       }
                     },
                     nullptr};
  auto in = counting_tensor({4}, 1);
  EXPECT_EQ(host.run({in.get(), nullptr, nullptr}, {0, 3, std::bit_cast<int64_t>(0.5)}), FXJIT_OK);
  EXPECT_EQ(host.outputs[0]->data<float>()[1], 2 * 5.5f + 42);
  EXPECT_EQ(host.run({in.get(), nullptr, nullptr}, {0, 4, std::bit_cast<int64_t>(0.5)}), FXJIT_GUARD);
  host.outputs.clear();
}

// A kernel that hands out its first scalar.
Node* launch_of_scalar(TypedGraph& g, int32_t index) {
  auto t = g.type(DType::Float32, g.constants({4}));
  Node* x = g.input("x", t);
  auto call = g.kernel("scale", 1, {t}, g.env->constant(4));
  call->kernel.scalars = {DType::Float64};
  call->scalars = {{kernel::ScalarBinding::Input, 0, index, {}}};
  Node* k = g.launch(call, {x});
  g.graph->output(k);
  return k;
}

fxjit_kernel writes_scalar() {
  return [](int64_t, int64_t, void* ctx) {
    buffer(ctx, 1)[0] = static_cast<float>(std::bit_cast<double>(static_cast<fxjit_launch*>(ctx)->scalars[0]));
  };
}

TEST_F(SpecialisedForward, NumbersMayBeComputedFromOthers) {
  using codegen::NumberExpr;
  TypedGraph g;
  g.number("s");
  g.number("n");
  g.inputs.inputs[0].is_float = true;
  auto derive = [&](NumberExpr e) {
    g.number("derived");
    g.inputs.inputs.back().is_float = true;
    g.inputs.inputs.back().derived = e;
  };
  derive({NumberExpr::Sub, {-1, 1.0}, {0, 0}});  // 2: 1 - s
  derive({NumberExpr::Div, {2, 0}, {1, 0}});     // 3: (1 - s) / n
  derive({NumberExpr::Neg, {3, 0}, {}});         // 4
  Node* k = launch_of_scalar(g, 4);
  SpecialisedHost host(g.graph, g.env, g.inputs);
  host.kernels[k] = {writes_scalar(), nullptr};
  auto in = counting_tensor({4}, 1);
  auto run = [&](double s, int64_t n) {
    return host.run({nullptr, nullptr, nullptr, nullptr, nullptr, in.get()},
                    {std::bit_cast<int64_t>(s), n, 0, 0, 0, 0});
  };
  EXPECT_EQ(run(0.25, 4), FXJIT_OK);
  EXPECT_EQ(host.outputs[0]->data<float>()[0], -0.1875f);
  host.outputs.clear();
  EXPECT_EQ(run(0.25, 0), FXJIT_GUARD);  // the program raises
  host.outputs.clear();
}

TEST_F(SpecialisedForward, NumbersMayBeGuardedToBeInRange) {
  TypedGraph g;
  g.number("s");
  g.inputs.inputs[0].is_float = true;
  g.inputs.inputs[0].fits_bfloat16 = true;
  Node* k = launch_of_scalar(g, 0);
  SpecialisedHost host(g.graph, g.env, g.inputs);
  host.kernels[k] = {writes_scalar(), nullptr};
  auto in = counting_tensor({4}, 1);
  auto run = [&](double s) {
    const auto status = host.run({nullptr, in.get()}, {std::bit_cast<int64_t>(s), 0});
    host.outputs.clear();
    return status;
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (double s : {0.0, -0.0, 1.5, -3e38, 0x1.fep127, inf, -inf, 5e-324}) EXPECT_EQ(run(s), FXJIT_OK) << s;
  for (double s : {1e39, -1e300, 0x1.ffp127, std::nan(""), -std::nan("")}) EXPECT_EQ(run(s), FXJIT_GUARD) << s;
}

TEST_F(SpecialisedForward, OffsetsOfStorageAndBuffer) {
  TypedGraph g;
  auto t = g.type(DType::Float32, g.constants({4}));
  Node* x = g.input("x", g.type(DType::Float32, g.constants({8})));
  auto call = g.kernel("tail", 1, {t}, g.env->constant(4));
  call->buffers[0].offset = g.env->constant(4);
  Node* k = g.launch(call, {x});
  g.graph->output(k);
  SpecialisedHost host(g.graph, g.env, g.inputs);
  host.kernels[k] = {noted_double_kernel, nullptr};
  auto base = counting_tensor({16}, 0), view = counting_tensor({8});
  view->storage = base->storage;
  view->storage_offset = 3;
  ASSERT_EQ(host.run({view.get()}), FXJIT_OK);
  EXPECT_EQ(host.outputs[0]->data<float>()[0], 2 * 7.0f);
  host.outputs.clear();
}

}  // namespace
}  // namespace fxjit
