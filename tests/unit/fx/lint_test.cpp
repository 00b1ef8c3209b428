// lint and dead code.
#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

TEST(Lint, ANodeOfAnotherGraph) {
  const GraphPtr g = Graph::create(), other = Graph::create();
  Node* x = other->placeholder("x");
  g->node_copy(*other->call_method("neg", t({x})));
  EXPECT_STARTS_WITH(
      error_of([&] { g->lint(); }),
      "RuntimeError: Argument 'x' of Node 'neg' does not belong to this Graph, but was used as an argument!");
}

TEST(Lint, AUseBeforeItsDefinition) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* n = g.call_method("neg", t({x}));
  g.lint();
  n->append(x);
  EXPECT_STARTS_WITH(error_of([&] { g.lint(); }),
                     "RuntimeError: Argument 'x' of Node 'neg' was used before it has been defined!");
}

TEST(Lint, AUseOfAnErasedNodeAndOfItself) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  g.erase_node(y);
  Node* n = g.call_method("neg", t({y}));
  EXPECT_STARTS_WITH(error_of([&] { g.lint(); }), "RuntimeError: Argument 'y' of Node 'neg' was used before");
  n->set_args(t({x, n}));
  EXPECT_STARTS_WITH(error_of([&] { g.lint(); }), "RuntimeError: Argument 'neg' of Node 'neg' was used before");
}

TEST(Lint, ANameGivenTwice) {
  Graph g;
  g.placeholder("x");
  g.placeholder("y")->set_name("x");
  EXPECT_EQ(error_of([&] { g.lint(); }), "RuntimeError: Node redefined name x!");
  Graph empty;  // the empty name is one like others
  empty.placeholder("x")->set_name("");
  empty.placeholder("y");
  empty.lint();
  empty.placeholder("z")->set_name("");
  EXPECT_EQ(error_of([&] { empty.lint(); }), "RuntimeError: Node redefined name !");
}

TEST(Lint, ATargetOfTheWrongKind) {
  Graph g;
  Node* n = g.call_function(op("neg"), t({1}));
  n->set_target("neg");
  EXPECT_EQ(error_of([&] { g.lint(); }), "ValueError: Node neg target neg has type str but a Callable is expected");
  n->set_op(Opcode::CallMethod);
  g.lint();
}

TEST(Lint, TargetsInTheOwningModule) {
  const auto root = make_ref<BasicModule>("Root");
  const auto child = root->register_module("a", make_ref<BasicModule>("Child"));
  child->register_parameter("w", parameter(1));
  Graph g;
  g.set_owning_module(root.get());
  g.create_node(Opcode::GetAttr, "a.w");
  g.lint();
  Node* missing = g.create_node(Opcode::GetAttr, "a.v");
  EXPECT_EQ(error_of([&] { g.lint(); }), "RuntimeError: Node a_v target a.v references nonexistent attribute v of a");
  g.erase_node(missing);
  g.create_node(Opcode::CallModule, "a.w");
  EXPECT_EQ(error_of([&] { g.lint(); }), "RuntimeError: Node a_w_1 target a.w w of a does not reference an nn.Module");
}

TEST(DeadCode, UnusedChainsGoAndImpureNodesStay) {
  Graph g;
  Node* x = g.placeholder("x");
  g.placeholder("unused");
  Node* a = g.call_method("neg", t({x}));
  g.call_method("relu", t({a}));
  g.call_method("mul_", t({x, 2}));  // torch.fx removes it, and with it what the program computes
  g.call_method("__len__", t({x}));
  g.call_function(op("setitem"), t({x, 0, 1}));
  g.call_function(make_function("m.print", nullptr, true), t({x}));
  g.output(g.call_method("clone", t({x})));
  EXPECT_TRUE(g.eliminate_dead_code());
  EXPECT_EQ(names(g), (Names{"x", "unused", "mul_", "setitem", "print_1", "clone", "output"}));
  EXPECT_FALSE(g.eliminate_dead_code());
  EXPECT_TRUE(g.eliminate_dead_code([](const Node& n) { return n.op() != Opcode::CallMethod; }));
  EXPECT_EQ(names(g), (Names{"x", "unused", "setitem", "print_1", "clone", "output"}));
}

TEST(DeadCode, ModulesAreAskedWhetherTheyArePure) {
  struct Impure : BasicModule {
    bool is_impure() const override { return true; }
  };
  const auto root = make_ref<BasicModule>("Root");
  root->register_module("pure", make_ref<BasicModule>("M"));
  root->register_module("impure", Ref<Module>(make_ref<Impure>()));
  Graph g;
  Node* x = g.placeholder("x");
  g.call_module("pure", t({x}));
  g.call_module("impure", t({x}));
  g.output(x);
  EXPECT_EQ(error_of([&] { g.eliminate_dead_code(); }),
            "AssertionError: self.graph.owning_module not set for purity check");
  g.set_owning_module(root.get());
  g.eliminate_dead_code();
  EXPECT_EQ(names(g), (Names{"x", "impure", "output"}));
}

TEST(DeadCode, LintsFirst) {
  Graph g;
  Node* x = g.placeholder("x");
  g.call_method("neg", t({x}))->append(x);
  EXPECT_STARTS_WITH(error_of([&] { g.eliminate_dead_code(); }), "RuntimeError: Argument 'x'");
}

}  // namespace
}  // namespace fxjit::fx::test
