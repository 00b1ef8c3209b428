// GraphModules: called as they are, compiled, edited, with any values.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "fxjit/fxjit.h"
#include "helpers.h"

namespace fxjit {
namespace {

using fx::Proxy;
using fx::Value;
using testing::same;

const auto sigmoid_lowp =
    fx::wrap("test.sigmoid_lowp", [](auto x) { return x.to(at::kFloat).sigmoid().to(at::kHalf); });
const auto add_lowp =
    fx::wrap("test.add_lowp", [](auto a, auto b) { return (a.to(at::kFloat) + b.to(at::kFloat)).to(at::kHalf); });

fx::GraphModuleRef make_foo() {
  return fx::symbolic_trace([](Proxy x, Proxy y) { return add_lowp(sigmoid_lowp(x), sigmoid_lowp(y)); });
}
at::Tensor foo(at::Tensor x, at::Tensor y) { return add_lowp(sigmoid_lowp(x), sigmoid_lowp(y)); }

class CompileGraph : public ::testing::Test {
 protected:
  c10::NoGradGuard no_grad;
};

TEST_F(CompileGraph, AGraphModuleThatIsCalledSpecialisesByItself) {
  auto gm = make_foo();
  for (int64_t n : {16, 16, 40, 40, 7}) {
    at::Tensor x = at::randn({n}, at::kHalf), y = at::randn({n}, at::kHalf);
    EXPECT_TRUE(same(to_tensor((*gm)({x, y})), foo(x, y), 1e-3));
  }
  const std::string code = gm->code();
  EXPECT_NE(code.find("generic form"), std::string::npos);
  EXPECT_NE(code.find("; ---- specialisation"), std::string::npos) << code;
}

TEST_F(CompileGraph, CompositesAreFusedAndOneSpecialisationServesManySizes) {
  auto f = compile(make_foo());
  for (int64_t n : {16, 16, 17, 100, 1000}) {
    at::Tensor x = at::randn({n}, at::kHalf), y = at::randn({n}, at::kHalf);
    EXPECT_TRUE(same(f(x, y), foo(x, y), 1e-3));
  }
  driver::Report r = f.explain();
  ASSERT_EQ(r.specialisations.size(), 1u) << to_string(r);
  EXPECT_EQ(r.recorded_calls, 1);
  EXPECT_EQ(r.specialisations[0].kernels.size(), 1u) << to_string(r);
  EXPECT_TRUE(r.specialisations[0].aten_calls.empty()) << to_string(r);
}

TEST_F(CompileGraph, TheGenericCodeNamesTheCompositesAndReleasesValues) {
  const std::string code = make_foo()->code();
  size_t calls = 0;
  for (const char* name : {"%sigmoid_lowp = call", "%sigmoid_lowp_1 = call", "%add_lowp = call"})
    calls += code.find(name) != std::string::npos;
  EXPECT_EQ(calls, 3u) << code;
  EXPECT_NE(code.find("release"), std::string::npos) << code;
}

TEST_F(CompileGraph, EditingWithoutRecompileKeepsTheOldCode) {
  auto gm = fx::symbolic_trace([](Proxy x) { return x.relu(); });
  auto f = compile(gm);
  at::Tensor x = at::randn({8});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(x), x.relu()));
  fx::Node* relu = *++gm->graph().nodes().begin();
  ASSERT_EQ(relu->target_str(), "relu");
  relu->set_target("neg");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(same(f(x), x.relu()));
    EXPECT_TRUE(same(to_tensor((*gm)({x})), x.relu()));
  }
  EXPECT_EQ(gm->code().find("method.neg"), std::string::npos);
  gm->recompile();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(same(f(x), x.neg()));
    EXPECT_TRUE(same(to_tensor((*gm)({x})), x.neg()));
  }
  EXPECT_NE(gm->code().find("method.neg"), std::string::npos);
}

TEST_F(CompileGraph, AttributesAreReadAtCallTime) {
  auto root = fx::make_ref<fx::BasicModule>("test.Root");
  at::Tensor w = at::randn({4});
  root->register_parameter("w", to_value(w).is_object() ? fx::ObjectRef(&to_value(w).as_object()) : nullptr);
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  fx::Node* a = graph->get_attr("w");
  graph->output(graph->call_function(fx::builtin_function("_operator.mul"), Value::tuple({x, a})));
  auto gm = fx::GraphModule::create(root, graph);
  auto f = compile(gm);
  at::Tensor in = at::randn({4});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(in), in * w));
  w.mul_(3);
  EXPECT_TRUE(same(f(in), in * w));
  at::Tensor other = at::randn({4});
  Value v = to_value(other);
  gm->set_attribute("w", fx::ObjectRef(&v.as_object()), fx::AttributeKind::Parameter);
  EXPECT_TRUE(same(f(in), in * other));
  EXPECT_EQ(f.explain().recorded_calls, 1) << to_string(f.explain());
}

TEST_F(CompileGraph, OtherValuesThanTensorsWork) {
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  fx::Node* k = graph->placeholder("k", Value(2));
  fx::Node* list = graph->placeholder("list");
  fx::Node* first = graph->call_function(fx::builtin_function("_operator.getitem"), Value::tuple({list, 0}));
  fx::Node* scaled = graph->call_function(fx::builtin_function("_operator.mul"), Value::tuple({x, k}));
  fx::Node* sum = graph->call_function(fx::builtin_function("_operator.add"), Value::tuple({scaled, first}));
  fx::Node* twice = graph->call_function(fx::builtin_function("_operator.mul"), Value::tuple({k, 2}));
  fx::Node* n = graph->call_method("size", Value::tuple({x, 0}));
  graph->output(Value::dict({{"sum", sum}, {"k", twice}, {"n", n}}));
  auto gm = fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), graph);
  auto f = compile(gm);
  for (int round = 0; round < 3; ++round) {
    for (int64_t size : {3, 5}) {
      for (double factor : {2.0, 0.5}) {
        at::Tensor t = at::randn({size}), u = at::randn({size});
        const Value args[] = {to_value(t), factor, Value::list({to_value(u), 1})};
        Value r = f.call_values(args);
        EXPECT_TRUE(same(to_tensor(*r.find("sum")), t * factor + u));
        EXPECT_EQ(r.find("k")->as_float(), 2 * factor);
        EXPECT_EQ(r.find("n")->as_int(), size);
      }
    }
  }
  at::Tensor t = at::randn({3});
  const Value one[] = {to_value(t)};
  Value r = f.call_values(one, Value::dict({{"list", Value::tuple({to_value(t)})}}));
  EXPECT_TRUE(same(to_tensor(*r.find("sum")), t * 2 + t));
  EXPECT_THROW(f.call_values(one), RuntimeError);
  EXPECT_THROW(f.call_values(one, Value::dict({{"bad", 1}})), Error);
}

TEST_F(CompileGraph, MoreConstantsThanSpecialisationsRunTheGenericForm) {
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  fx::Node* k = graph->placeholder("k");
  graph->output(graph->call_function(fx::builtin_function("_operator.add"), Value::tuple({x, k})));
  auto gm = fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), graph);
  auto f = compile(gm);
  at::Tensor t = at::ones({3});
  for (int64_t k_value = 0; k_value < 20; ++k_value) {
    const Value args[] = {to_value(t), k_value};
    EXPECT_TRUE(same(to_tensor(f.call_values(args)), t + k_value));
  }
  driver::Report r = f.explain();
  EXPECT_EQ(r.generic_calls, 12) << to_string(r);
  ASSERT_FALSE(r.fallbacks.empty());
}

TEST_F(CompileGraph, AnyCalleeRunsInTheGenericForm) {
  int calls = 0;
  auto counted = fx::make_function(
      "test.counted",
      [&calls](std::span<const Value> args, const Value&) {
        ++calls;
        return args[0];
      },
      /*impure=*/true);
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  fx::Node* y = graph->call_function(counted, Value::tuple({x}));
  fx::Node* z = graph->call_method("softmax", Value::tuple({y}), Value::dict({{"dim", 0}}));
  graph->output(graph->call_function(aten("clamp"), Value::tuple({z, 0.1, 0.4})));
  auto f = compile(fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), graph));
  for (int i = 1; i <= 4; ++i) {
    at::Tensor t = at::randn({5});
    EXPECT_TRUE(same(f(t), t.softmax(0).clamp(0.1, 0.4), 1e-6));
    EXPECT_EQ(calls, i);
  }
  driver::Report r = f.explain();
  ASSERT_FALSE(r.fallbacks.empty());
  EXPECT_NE(r.fallbacks[0].reason.find("side effects"), std::string::npos) << to_string(r);
}

TEST_F(CompileGraph, LeavesOfWrapStayCallsAndEqualInlined) {
  const auto leaf = fx::wrap("test.leaf", [](auto x) { return x.relu() + 1; }, {.leaf = true});
  auto f = compile(fx::symbolic_trace([&](Proxy x) { return leaf(x) * 2; }));
  for (int i = 0; i < 3; ++i) {
    at::Tensor x = at::randn({6});
    EXPECT_TRUE(same(f(x), (x.relu() + 1) * 2));
  }
  EXPECT_NE(to_string(f.explain()).find("marked as a leaf"), std::string::npos) << to_string(f.explain());
}

TEST_F(CompileGraph, ExceptionsOfCalleesKeepTheirType) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  auto raise =
      fx::make_function("test.raise", [](std::span<const Value>, const Value&) -> Value { throw Mine("mine"); }, true);
  graph->output(graph->call_function(raise, Value::tuple({x})));
  auto f = compile(fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), graph));
  for (int i = 0; i < 3; ++i) EXPECT_THROW(f(at::ones({2})), Mine);
  auto g = compile(fx::symbolic_trace([](Proxy a, Proxy b) { return a.matmul(b); }));
  at::Tensor m = at::randn({2, 3});
  for (int i = 0; i < 3; ++i) EXPECT_THROW(g(m, m), c10::Error);
  EXPECT_TRUE(same(g(m, m.t()), m.matmul(m.t()), 1e-6));
}

TEST_F(CompileGraph, ModulesInsideAGraphAreCalled) {
  auto inner = fx::symbolic_trace([](Proxy x) { return x.tanh() + 1; });
  auto root = fx::make_ref<fx::BasicModule>("test.Root");
  root->register_module("inner", inner);
  auto graph = fx::Graph::create();
  fx::Node* x = graph->placeholder("x");
  graph->output(graph->call_module("inner", Value::tuple({x})));
  auto f = compile(fx::GraphModule::create(root, graph));
  for (int64_t n : {5, 5, 8, 8}) {
    at::Tensor t = at::randn({n});
    EXPECT_TRUE(same(f(t), t.tanh() + 1, 1e-5));
  }
  EXPECT_EQ(f.explain().specialisations.size(), 2u) << to_string(f.explain());
}

TEST_F(CompileGraph, SizesThatAreUsedAreNotStale) {
  auto f = compile(fx::symbolic_trace([](Proxy x) { return x.reshape(x.size(0), -1).sum(1) / x.size(1); }));
  for (int64_t n : {2, 2, 3, 3, 4}) {
    at::Tensor x = at::randn({n, n + 1, 2});
    at::Tensor want = x.reshape({n, -1}).sum(1) / (n + 1);
    EXPECT_TRUE(same(f(x), want, 1e-5));
  }
}

TEST_F(CompileGraph, FlattenOfTwoSizesIsRight) {
  auto f = compile(fx::symbolic_trace([](Proxy x) { return x.flatten(1).relu(); }));
  for (int64_t n : {2, 2, 3, 3, 5}) {
    at::Tensor x = at::randn({n, 3, n});
    EXPECT_TRUE(same(f(x), x.flatten(1).relu()));
  }
}

TEST_F(CompileGraph, GradientsGoThroughTheGenericForm) {
  c10::AutoGradMode grad(true);
  auto f = compile(fx::symbolic_trace([](Proxy x) { return (x * x).sum(); }));
  at::Tensor x = at::randn({4}).requires_grad_();
  for (int i = 0; i < 2; ++i) f(x).backward();
  EXPECT_TRUE(same(x.grad(), 4 * x.detach(), 1e-6));
  EXPECT_EQ(f.explain().generic_calls, 2);
}

}  // namespace
}  // namespace fxjit
