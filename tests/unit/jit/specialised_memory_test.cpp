// Where values live in the specialised forward: slots, the arena, callees' operands, what goes out.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "fxjit/errors.h"
#include "specialised_host.h"
#include "typed_graphs.h"

namespace fxjit {
namespace {

using codegen::ForwardValue;
using fx::Node;
using test::buffer;
using test::extent;
using test::FakeTensor;
using test::SpecialisedHost;
using test::TensorPtr;
using test::TypedGraph;

void double_kernel(int64_t, int64_t, void* ctx) {
  for (int64_t i = 0; i < extent(ctx); ++i) buffer(ctx, 1)[i] = 2 * buffer(ctx, 0)[i];
}
void add_kernel(int64_t, int64_t, void* ctx) {
  for (int64_t i = 0; i < extent(ctx); ++i) buffer(ctx, 2)[i] = buffer(ctx, 0)[i] + buffer(ctx, 1)[i];
}
// Two results: the double and the square.
void two_kernel(int64_t, int64_t, void* ctx) {
  for (int64_t i = 0; i < extent(ctx); ++i) {
    const float x = buffer(ctx, 0)[i];
    buffer(ctx, 1)[i] = 2 * x;
    buffer(ctx, 2)[i] = x * x;
  }
}
// Adds its operand to itself.
void in_place_kernel(int64_t, int64_t, void* ctx) {
  for (int64_t i = 0; i < extent(ctx); ++i) buffer(ctx, 1)[i] += buffer(ctx, 0)[i];
}

TensorPtr filled_tensor(int64_t n, float value) {
  auto t = std::make_unique<FakeTensor>(DType::Float32, std::vector<int64_t>{n});
  std::fill_n(t->data<float>(), n, value);
  return t;
}

// A callee that returns its operand's values plus one in a new tensor.
FakeTensor* plus_one(SpecialisedHost& host, const Node& n) {
  FakeTensor* in = host.tensor(*n.arg(0).as_node());
  auto* out = new FakeTensor(DType::Float32, {static_cast<int64_t>(in->memory.size() / 4)});
  for (size_t i = 0; i < in->memory.size() / 4; ++i) out->data<float>()[i] = in->data<float>()[i] + 1;
  return out;
}

class SpecialisedMemory : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(FakeTensor::live, 0); }

  TypedGraph g;
  Dim n = g.size(0, 0, 8);
  TensorTypePtr t = g.type(DType::Float32, {n});
  Node* x = g.input("x", t);
  std::map<const Node*, std::pair<fxjit_kernel, fxjit_kernel>> kernels;

  Node* twice(Node* of) {
    Node* k = g.launch(g.kernel("twice", 1, {t}, n), {of});
    kernels[k] = {double_kernel, nullptr};
    return k;
  }
  Node* sum(Node* a, Node* b) {
    Node* k = g.launch(g.kernel("sum", 2, {t}, n), {a, b});
    kernels[k] = {add_kernel, nullptr};
    return k;
  }
  SpecialisedHost host() {
    SpecialisedHost h(g.graph, g.env, g.inputs);
    h.kernels = kernels;
    h.callees["aten::plus_one"] = plus_one;
    return h;
  }
  static float first(const SpecialisedHost& h, size_t output = 0) { return h.outputs.at(output)->data<float>()[0]; }
};

TEST_F(SpecialisedMemory, WhatOnlyKernelsTouchStaysInTheArena) {
  Node* v = x;
  for (int i = 0; i < 6; ++i) v = twice(v);
  g.graph->output(v);
  SpecialisedHost h = host();
  auto in = filled_tensor(5, 3);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(first(h), 192);
  EXPECT_EQ(h.ran, (std::vector<std::string>{"empty"}));
  EXPECT_EQ(h.plan().regions.size(), 2u) << "two values at a time";
  EXPECT_EQ(g.env->evaluate(h.plan().arena_bytes, std::vector<int64_t>{17}), 2 * 128);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, ValuesThatLiveTogetherDoNotShareTheirRegion) {
  std::vector<Node*> values;
  for (int i = 0; i < 5; ++i) values.push_back(twice(values.empty() ? x : values.back()));
  Node* v = values[0];
  for (int i = 1; i < 5; ++i) v = sum(v, values[i]);
  g.graph->output(v);
  SpecialisedHost h = host();
  auto in = filled_tensor(7, 1);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(first(h), 2 + 4 + 8 + 16 + 32);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, RegionsOfKnownSizeAreSharedWhereTheyFit) {
  TypedGraph c;
  auto large = c.type(DType::Float32, c.constants({100})), small = c.type(DType::Float32, c.constants({10}));
  Node* in = c.input("x", large);
  Node* a = c.launch(c.kernel("a", 1, {large}, c.env->constant(100)), {in});
  Node* b = c.launch(c.kernel("b", 1, {large}, c.env->constant(100)), {a});
  Node* d = c.launch(c.kernel("d", 1, {small}, c.env->constant(10)), {b});
  c.graph->output(c.launch(c.kernel("e", 1, {small}, c.env->constant(10)), {d}));
  const auto plan = codegen::plan_specialised(*c.graph, *c.env, c.inputs);
  EXPECT_EQ(plan.regions.size(), 2u);
  EXPECT_EQ(c.env->hint(plan.arena_bytes), 2 * 448);
}

TEST_F(SpecialisedMemory, CalleesReadSlotsAndTheirResultsAreReleased) {
  Node* a = twice(x);
  Node* called = g.aten("aten::plus_one", {a}, t);
  Node* b = twice(called);
  g.graph->output(sum(b, a));
  SpecialisedHost h = host();
  auto in = filled_tensor(4, 3);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(first(h), 14 + 6);
  // twice into a tensor for the callee, the callee; its result goes behind b; then the sum, and a goes.
  EXPECT_EQ(h.ran, (std::vector<std::string>{"empty", "aten::plus_one", "release", "empty", "release"}));
  EXPECT_EQ(h.plan().value_of(*b).where, ForwardValue::Scratch);
  EXPECT_EQ(h.plan().value_of(*a).where, ForwardValue::Slot);
  EXPECT_EQ(h.left_behind, 0);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, InputsReachCalleesThroughTheirSlots) {
  Node* called = g.aten("aten::plus_one", {x}, t);
  g.graph->output(called);
  SpecialisedHost h = host();
  auto in = filled_tensor(4, 3);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(first(h), 4);
  EXPECT_EQ(in->data<float>()[0], 3);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, ErrorOfACalleeEndsTheCall) {
  Node* a = twice(x);
  Node* called = g.aten("aten::plus_one", {a}, t);
  Node* failing = g.aten("aten::fails", {called}, t);
  g.graph->output(g.aten("aten::plus_one", {failing}, t));
  SpecialisedHost h = host();
  h.failing_callee = "aten::fails";
  auto in = filled_tensor(4, 3);
  EXPECT_EQ(h.run({in.get()}), FXJIT_ERROR);
  EXPECT_EQ(h.ran, (std::vector<std::string>{"empty", "aten::plus_one", "release", "aten::fails"}));
  EXPECT_EQ(h.left_behind, 1);
  EXPECT_TRUE(h.outputs.empty());
}

TEST_F(SpecialisedMemory, SizesForCalleesAreInTheFrame) {
  g.inputs.callee_dims = {g.env->constant(11), g.env->mul(n, g.env->constant(3)), n};
  g.graph->output(g.aten("aten::plus_one", {x}, t));
  SpecialisedHost h = host();
  std::vector<int64_t> at_call;
  h.callees["aten::plus_one"] = [&](SpecialisedHost& host, const Node& node) {
    at_call = host.symbols;
    return plus_one(host, node);
  };
  auto in = filled_tensor(9, 0);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(at_call, (std::vector<int64_t>{11, 27, 9}));
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, KernelWithSeveralResults) {
  Node* both = g.launch(g.kernel("both", 1, {t, t}, n), {x});
  kernels[both] = {two_kernel, nullptr};
  Node* doubled = g.part(both, 0, t);
  Node* square = g.part(both, 1, t);
  g.graph->output(fx::Argument::tuple({square, sum(doubled, square)}));
  SpecialisedHost h = host();
  auto in = filled_tensor(4, 5);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(first(h, 0), 25);
  EXPECT_EQ(first(h, 1), 35);
  EXPECT_EQ(h.plan().value_of(*doubled).where, ForwardValue::Scratch);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, OneValueThatGoesOutTwiceIsOwnedOnce) {
  Node* a = twice(x);
  g.graph->output(fx::Argument::tuple({a, a, x}));
  SpecialisedHost h = host();
  auto in = filled_tensor(4, 5);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(h.outputs.size(), 1u);
  EXPECT_EQ(h.borrowed, (std::vector<FakeTensor*>{h.outputs[0].get(), in.get()}));
  EXPECT_EQ(h.plan().outputs[1].slot, h.plan().outputs[0].slot);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, KernelThatWritesItsOperand) {
  Node* y = g.input("y", t);
  auto call = g.kernel("add_", 1, {}, n);
  g.add_buffer(*call, 1, -1, true);
  Node* k = g.launch(call, {x, y});
  kernels[k] = {in_place_kernel, nullptr};
  EXPECT_TRUE(call->writes_operand());
  EXPECT_TRUE(k->is_impure());
  g.graph->output(fx::Argument::tuple({twice(y)}));
  SpecialisedHost h = host();
  auto a = filled_tensor(4, 5), b = filled_tensor(4, 10);
  b->own_version.value = 41;
  ASSERT_EQ(h.run({a.get(), b.get()}), FXJIT_OK);
  EXPECT_EQ(b->data<float>()[3], 15);
  EXPECT_EQ(first(h), 30);
  EXPECT_EQ(b->own_version.value, 42u);
  EXPECT_EQ(a->own_version.value, 0u);
  EXPECT_EQ(h.ran, (std::vector<std::string>{"data", "empty"}));
  b->version = nullptr;  // an inference tensor has no counter
  EXPECT_EQ(h.run({a.get(), b.get()}), FXJIT_OK);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, MemoryThatACalleeMovesIsReadAnew) {
  Node* a = g.aten("aten::plus_one", {x}, t);
  Node* b = twice(a);
  Node* c = g.aten("aten::moves", {a}, t);
  g.graph->output(fx::Argument::tuple({sum(twice(a), b), c}));
  SpecialisedHost h = host();
  std::vector<float> elsewhere(4, 100);
  h.callees["aten::moves"] = [&](SpecialisedHost& host, const Node& node) {
    host.tensor(*node.arg(0).as_node())->storage->data = elsewhere.data();
    return filled_tensor(4, 0).release();
  };
  auto in = filled_tensor(4, 1);
  ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  EXPECT_EQ(first(h), 2 * 100 + 2 * 2);
  h.outputs.clear();
}

TEST_F(SpecialisedMemory, LongGraphsComeInParts) {
  for (const int steps : {256, 257, 1000}) {
    TypedGraph c;
    const Dim m = c.size(0, 0, 8);
    auto type = c.type(DType::Float32, {m});
    Node* v = c.input("x", type);
    std::map<const Node*, std::pair<fxjit_kernel, fxjit_kernel>> functions;
    for (int i = 0; i < steps; ++i) {
      if (i % 3 == 0) {
        v = c.aten("aten::plus_one", {v}, type);
      } else {
        v = c.launch(c.kernel("half", 1, {type}, m), {v});
        functions[v] = {[](int64_t, int64_t, void* ctx) {
                          for (int64_t j = 0; j < extent(ctx); ++j) buffer(ctx, 1)[j] = buffer(ctx, 0)[j] / 2;
                        },
                        nullptr};
      }
    }
    c.graph->output(v);
    float expected = 7;
    for (int i = 0; i < steps; ++i) expected = i % 3 == 0 ? expected + 1 : expected / 2;
    SpecialisedHost h(c.graph, c.env, c.inputs);
    h.kernels = functions;
    h.callees["aten::plus_one"] = plus_one;
    auto in = filled_tensor(13, 7);
    ASSERT_EQ(h.run({in.get()}), FXJIT_OK) << steps;
    EXPECT_EQ(first(h), expected);
    EXPECT_EQ(h.outputs[0]->geometry[0], 13);
    EXPECT_EQ(h.text().find("define internal") != std::string::npos, steps > 256);
    EXPECT_EQ(h.left_behind, 0);
    h.outputs.clear();
  }
}

TEST_F(SpecialisedMemory, NontemporalVariantForLargeAlignedOutputs) {
  static int normal = 0, bypassing = 0;
  normal = bypassing = 0;
  Node* k = g.launch(g.kernel("copy", 1, {t}, n), {x});
  codegen::KernelChoice choice;
  choice.nontemporal = choice.schedule;
  choice.nontemporal->nontemporal = true;
  choice.nontemporal_bytes = 4000;
  g.inputs.kernels[k] = choice;
  kernels[k] = {[](int64_t, int64_t, void*) { ++normal; },
                [](int64_t, int64_t, void* ctx) {
                  ++bypassing;
                  if (reinterpret_cast<uintptr_t>(buffer(ctx, 1)) % 64 != 0) normal += 100;
                }};
  g.graph->output(twice(k));  // k itself lies in the arena
  SpecialisedHost h = host();
  for (const int64_t size : {999, 1000, 1001, 10}) {
    auto in = filled_tensor(size, 1);
    ASSERT_EQ(h.run({in.get()}), FXJIT_OK);
  }
  EXPECT_EQ(normal + bypassing, 4);
  EXPECT_EQ(bypassing, 2) << h.text();
  h.outputs.clear();
}

// Expressions over two sizes and a number, evaluated by the code and by ShapeEnv.
TEST_F(SpecialisedMemory, ShapeArithmeticIsThatOfShapeEnv) {
  Node* number = g.number("n");
  (void)number;
  const Dim k = g.env->symbol({SymSource::Int, 1, 0}, 3);
  std::vector<Dim> pool = {n, k, g.env->constant(-7), g.env->constant(0), g.env->constant(64), g.env->constant(-1)};
  std::mt19937 random(7);
  while (pool.size() < 300) {
    const Dim a = pool[random() % pool.size()], b = pool[random() % pool.size()];
    switch (random() % 5) {
      case 0:
        pool.push_back(g.env->add(a, b));
        break;
      case 1:
        pool.push_back(g.env->mul(a, b));
        break;
      case 2:
        if (!g.env->is_const(b, 0)) pool.push_back(g.env->floordiv(a, b));
        break;
      case 3:
        if (!g.env->is_const(b, 0)) pool.push_back(g.env->mod(a, b));
        break;
      case 4:
        pool.push_back(g.env->max(a, b));
        break;
    }
  }
  g.inputs.callee_dims = pool;
  g.graph->output(x);
  SpecialisedHost h = host();
  for (const int64_t value : {3, -3, 0, 1, -1, 1000, -64}) {
    auto in = filled_tensor(5, 0);
    ASSERT_EQ(h.run({in.get(), nullptr}, {0, value}), FXJIT_OK);
    const std::vector<int64_t> symbols = {5, value};
    for (size_t i = 0; i < pool.size(); ++i) {
      ASSERT_EQ(h.symbols[i], g.env->evaluate(pool[i], symbols)) << g.env->to_string(pool[i]) << " with " << value;
    }
  }
}

TEST_F(SpecialisedMemory, GuardsOfTheShapeEnv) {
  Node* y = g.input("y", g.type(DType::Float32, {g.size(1, 0, 24)}));
  (void)y;
  g.env->guard_eq(g.env->mul(n, g.env->constant(3)), g.size(1, 0, 24));
  g.env->guard_lt(n, g.env->constant(20));
  g.graph->output(twice(x));
  SpecialisedHost h = host();
  auto run = [&](int64_t a, int64_t b) {
    auto p = filled_tensor(a, 0), q = filled_tensor(b, 0);
    const fxjit_status s = h.run({p.get(), q.get()});
    h.outputs.clear();
    return s;
  };
  EXPECT_EQ(run(8, 24), FXJIT_OK);
  EXPECT_EQ(run(19, 57), FXJIT_OK);
  EXPECT_EQ(run(19, 56), FXJIT_GUARD);
  EXPECT_EQ(run(20, 60), FXJIT_GUARD);
}

TEST_F(SpecialisedMemory, InputThatTheGraphDoesNotKnowIsAnInternalError) {
  g.graph->placeholder("stranger");
  g.graph->output(x);
  EXPECT_THROW(codegen::plan_specialised(*g.graph, *g.env, g.inputs), InternalError);
}

}  // namespace
}  // namespace fxjit
