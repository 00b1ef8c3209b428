#include <thread>

#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

TEST(GraphModule, TakesReferencesToWhatTheGraphUses) {
  const auto root = make_ref<BasicModule>("Root");
  const auto a = root->register_module("a", make_ref<BasicModule>("A"));
  const ObjectRef w = a->register_parameter("w", parameter(3));
  a->register_parameter("unused", parameter(1));
  root->set_attribute("plain", tensor(2), AttributeKind::Plain);
  root->register_module("other", make_ref<BasicModule>("B"));
  const GraphPtr g = Graph::create();
  g->output(g->call_function(op("add"), t({g->get_attr("a.w"), g->get_attr("plain")})));
  const auto gm = GraphModule::create(root, g);
  EXPECT_EQ(find_attribute(*gm, "a.w"), w);
  EXPECT_FALSE(find_attribute(*gm, "a.unused"));
  EXPECT_FALSE(gm->attribute("other"));
  EXPECT_EQ(gm->attribute_kind("plain"), AttributeKind::Buffer);
  EXPECT_EQ(run(*gm, {}), 5);
  EXPECT_EQ(g->owning_module(), gm.get());
}

TEST(GraphModule, AMissingTargetIsNamed) {
  const GraphPtr g = Graph::create();
  g->output(g->get_attr("no.such"));
  EXPECT_EQ(error_of([&] { GraphModule::create(make_ref<BasicModule>("Root"), g); }),
            "RuntimeError: Node no_such referenced target no.such but that target was not provided in ``root``!");
}

TEST(GraphModule, SettingAGraphRecompiles) {
  const auto gm = symbolic_trace([](Proxy x) { return x + 1; });
  const auto other = symbolic_trace([](Proxy x) { return x * 10; });
  gm->set_graph(other->graph().copy());
  EXPECT_EQ(number(gm->snapshot()->graph->size()), 3);
  EXPECT_EQ((*gm)({Value(2)}), Value(20));
  EXPECT_EQ(error_of([&] { gm->set_graph(nullptr); }), "AssertionError: Expected a Graph instance, but got null");
}

TEST(GraphModule, RunsWithoutExecutorInTheInterpreter) {
  const auto gm = symbolic_trace([](Proxy x, Proxy y) { return (x + y).floordiv(2) * -1; });
  EXPECT_EQ((*gm)({Value(3), Value(4)}), Value(-3));
  gm->graph().output_node()->set_args(t({7}));
  EXPECT_EQ((*gm)({Value(3), Value(4)}), Value(-3));  // not yet recompiled
  gm->recompile();
  EXPECT_EQ((*gm)({Value(3), Value(4)}), Value(7));
}

TEST(GraphModule, AnExecutorTakesOver) {
  struct Fixed : Executor {
    Value call(GraphModule&, std::span<const Value>, const Value&) override { return 42; }
    std::string code(GraphModule&) override { return "code"; }
    void recompile(GraphModule&) override { ++recompiled; }
    int recompiled = 0;
  };
  const auto gm = symbolic_trace([](Proxy x) { return x; });
  const auto executor = std::make_shared<Fixed>();
  gm->set_executor(executor);
  EXPECT_EQ((*gm)({Value(1)}), Value(42));
  EXPECT_EQ(gm->code(), "code");
  gm->recompile();
  EXPECT_EQ(executor->recompiled, 1);
}

TEST(GraphModule, CallsAndRecompilesMayRunInSeveralThreads) {
  const auto gm = symbolic_trace([](Proxy x) { return x + 1; });
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!stop) wrong += !((*gm)({Value(1)}) == Value(2));
    });
  }
  for (int i = 0; i < 200; ++i) gm->recompile();
  stop = true;
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong, 0);
}

TEST(GraphModule, IsItselfTracedThroughAndMayBeALeaf) {
  const auto inner = symbolic_trace([](Proxy x) { return sigmoid_lowp()(x) + 1; });
  struct Outer : BasicModule {
    explicit Outer(ModuleRef m) : BasicModule("Outer") { register_module("inner", m); }
    std::optional<Signature> signature() const override { return named_signature({"v"}); }
    Argument forward(Tracer& tr, std::span<const Argument> args, const Argument&) override {
      return tr.call(find_module(*this, "inner"), {args[0]});
    }
  };
  const ModuleRef outer = make_ref<Outer>(inner);
  EXPECT_EQ(names(symbolic_trace(outer)->graph()), (Names{"v", "sigmoid_lowp", "add", "output"}));
  struct Leaf : Tracer {
    bool is_leaf_module(const Module&, std::string_view) override { return true; }
  } leaf;
  const GraphPtr g = leaf.trace(outer);
  EXPECT_EQ(names(*g), (Names{"v", "inner", "output"}));
  const auto gm = GraphModule::create(outer, g);
  EXPECT_EQ(names(symbolic_trace(ModuleRef(inner))->graph()), (Names{"x", "sigmoid_lowp", "add", "output"}));
  EXPECT_EQ(gm->attribute("inner"), ObjectRef(inner));
}

TEST(GraphModule, SubmodulesAreAddedAndDeleted) {
  const auto root = make_ref<BasicModule>("Root");
  const auto called = root->register_module("called", make_ref<BasicModule>("A"));
  called->register_module("part", make_ref<BasicModule>("P"));
  const GraphPtr g = Graph::create();
  g->output(g->call_module("called", t({g->placeholder("x")})));
  const auto gm = GraphModule::create(root, g);
  EXPECT_TRUE(gm->add_submodule("deep.er.one", make_ref<BasicModule>("C")));
  EXPECT_TRUE(find_module(*gm, "deep.er.one"));
  EXPECT_TRUE(gm->delete_submodule("deep.er.one"));
  EXPECT_FALSE(gm->delete_submodule("deep.er.one"));
  gm->set_attribute("w", parameter(1), AttributeKind::Parameter);
  EXPECT_FALSE(gm->add_submodule("w.x", make_ref<BasicModule>("C")));
  gm->delete_all_unused_submodules();
  EXPECT_FALSE(gm->attribute("deep"));
  EXPECT_TRUE(find_module(*gm, "called.part"));
}

TEST(GraphModule, CopiesShareAttributesAndOwnTheirGraph) {
  const auto gm = symbolic_trace([](Proxy x) { return x + 1; });
  const auto copy = gm->copy();
  copy->graph().output_node()->set_args(t({nullptr}));
  EXPECT_NE(gm->graph().to_string(), copy->graph().to_string());
  EXPECT_EQ(copy->signature()->at(0).name, "x");
}

TEST(Modules, WalksGiveEachModuleAndTensorOnce) {
  const auto root = make_ref<BasicModule>("Root");
  const auto a = root->register_module("a", make_ref<BasicModule>("A"));
  root->register_module("again", a);
  const ObjectRef w = a->register_parameter("w", parameter(1));
  root->register_parameter("tied", w);
  Names modules, attributes;
  for (const auto& [path, m] : named_modules(root)) modules.push_back(path);
  for (const auto& at : named_attributes(root)) attributes.push_back(at.name);
  EXPECT_EQ(modules, (Names{"", "a"}));
  EXPECT_EQ(attributes, (Names{"tied"}));
}

}  // namespace
}  // namespace fxjit::fx::test
