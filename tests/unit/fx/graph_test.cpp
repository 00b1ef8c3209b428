// Graph building and editing.
#include "fx_test_util.h"
#include "support/log.h"

namespace fxjit::fx::test {
namespace {

TEST(Graph, BuildsAndPrintsAsTorchFx) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y", Argument(4), "int");
  Node* w = g.get_attr("w");
  Node* add = g.call_function(op("add"), t({x, y}));
  Node* relu = g.call_module("act.relu", t({add}));
  Node* out = g.call_method("view", t({relu, -1}), Argument::dict({{"k", w}}));
  g.output(Argument::dict({{"a", Argument::list({out, "s"})}}));
  EXPECT_EQ(g.to_string(),
            "graph():\n"
            "    %x : [num_users=1] = placeholder[target=x]\n"
            "    %y : 'int' [num_users=1] = placeholder[target=y](default=4)\n"
            "    %w : [num_users=1] = get_attr[target=w]\n"
            "    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %y), kwargs = {})\n"
            "    %act_relu : [num_users=1] = call_module[target=act.relu](args = (%add,), kwargs = {})\n"
            "    %view : [num_users=1] = call_method[target=view](args = (%act_relu, -1), kwargs = {k: %w})\n"
            "    return {'a': [view, 's']}");
  g.lint(nullptr);
  EXPECT_EQ(g.size(), 7u);
  EXPECT_EQ(g.output_node()->op(), Opcode::Output);
}

TEST(Graph, PrintTabularHasOneRowForEachNode) {
  Graph g;
  g.output(g.call_function(op("add"), t({g.placeholder("x"), 1})));
  EXPECT_EQ(g.format_tabular(),
            "opcode         name    target        args    kwargs\n"
            "-------------  ------  ------------  ------  ------\n"
            "placeholder    x       x             ()      {}\n"
            "call_function  add     operator.add  (x, 1)  {}\n"
            "output         output  output        (add,)  {}\n");
}

TEST(Graph, UsersAreAnOrderedSet) {
  Graph g;
  Node* a = g.placeholder("a");
  Node* b = g.call_function(op("add"), t({a, a}));
  Node* c = g.call_function(op("mul"), t({a, b}));
  Node* d = g.call_method("__and__", t({a}), Argument::dict({{"o", b}, {"p", a}}));
  EXPECT_EQ(names(a->users_vector()), (Names{"add", "mul", "and_1"}));
  EXPECT_EQ(a->num_users(), 3u);
  b->set_args(t({a, 1}));  // moves to the end, as in torch.fx
  EXPECT_EQ(names(a->users_vector()), (Names{"mul", "and_1", "add"}));
  Names inputs;
  for (Node* n : d->all_input_nodes()) inputs.emplace_back(n->name());
  EXPECT_EQ(inputs, (Names{"a", "add"}));
  EXPECT_TRUE(c->uses(b));
  EXPECT_FALSE(c->uses(d));
}

TEST(Graph, ArgumentUpdatesKeepUsesRight) {
  Graph g;
  Node *x = g.placeholder("x"), *y = g.placeholder("y");
  Node* n = g.call_function(op("add"), t({x, x}));
  n->update_arg(1, y);
  EXPECT_EQ(n->args().to_string(), "(%x, %y)");
  EXPECT_EQ(y->num_users(), 1u);
  n->update_arg(0, y);
  EXPECT_EQ(x->num_users(), 0u);
  n->insert_arg(0, x);
  EXPECT_EQ(n->args().to_string(), "(%x, %y, %y)");
  n->insert_arg(3, 5);
  n->update_kwarg("alpha", x);
  n->update_kwarg("alpha", 2);
  EXPECT_EQ(n->kwargs().to_string(), "{alpha: 2}");
  EXPECT_EQ(error_of([&] { n->update_arg(9, 1); }), "IndexError: list assignment index out of range");
  EXPECT_EQ(error_of([&] { n->insert_arg(9, 1); }),
            "AssertionError: insert_args index must be between 0 and len(self.args), got 9");
  EXPECT_EQ(error_of([&] { n->set_args(Argument::list({x})); }), "AssertionError: args must be a tuple, got list");
  EXPECT_EQ(n->args().to_string(), "(%x, %y, %y, 5)");
}

TEST(Graph, AnInsertedArgumentLeavesTheOrderOfUsers) {
  Graph g;
  Node *x = g.placeholder("x"), *y = g.placeholder("y");
  Node* first = g.call_function(op("add"), t({x, 1}));
  Node* second = g.call_function(op("add"), t({x, 2}));
  first->insert_arg(0, y);  // needs more room for its inputs
  first->insert_arg(0, x);
  EXPECT_EQ(first->args().to_string(), "(%x, %y, %x, 1)");
  EXPECT_EQ(x->users_vector(), (std::vector<Node*>{first, second}));
  EXPECT_EQ(y->users_vector(), (std::vector<Node*>{first}));
  first->set_args(t({1}));
  EXPECT_EQ(x->users_vector(), (std::vector<Node*>{second}));
  EXPECT_EQ(y->num_users(), 0u);
}

TEST(Graph, IsCopiedIntoItself) {
  Graph g;
  g.call_method("relu", t({g.placeholder("x")}));
  NodeMap map;
  EXPECT_FALSE(g.graph_copy(g, map));
  EXPECT_EQ(g.size(), 4u);
  EXPECT_EQ(map.size(), 2u);
  g.lint(nullptr);
}

TEST(Graph, ReplaceAllUsesReturnsTheChangedUsersAndHonoursTheFilter) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_method("relu", t({x}));
  Node* b = g.call_method("neg", t({x}));
  Node* c = g.call_function(op("add"), t({Argument::list({x}), Argument::slice(x, nullptr)}));
  Node* n = g.call_method("clone", t({x}));
  const auto changed = x->replace_all_uses_with(n, [&](Node* user) { return user != n && user != b; });
  EXPECT_EQ(names(changed), (Names{"relu", "add"}));
  EXPECT_EQ(names(x->users_vector()), (Names{"neg", "clone"}));
  EXPECT_EQ(names(n->users_vector()), (Names{"relu", "add"}));
  EXPECT_EQ(c->args().to_string(), "([%clone], slice(clone, None, None))");
  EXPECT_EQ(a->arg(0), Argument(n));
}

TEST(Graph, ReplaceAllUsesCopiesMetaOnRequest) {
  Graph g;
  Node *a = g.placeholder("a"), *b = g.placeholder("b"), *c = g.placeholder("c");
  a->meta().set("k", 1);
  a->replace_all_uses_with(b, {}, true);
  EXPECT_EQ(*b->meta().find("k"), Argument(1));
  c->meta().set("own", 1);
  EXPECT_STARTS_WITH(error_of([&] { a->replace_all_uses_with(c, {}, true); }),
                     "AssertionError: Called node.replace_all");
}

TEST(Graph, EraseRefusesUsedAndForeignNodes) {
  Graph g, other;
  Node* a = g.placeholder("a");
  Node* b = g.call_method("neg", t({a}));
  EXPECT_EQ(error_of([&] { g.erase_node(a); }),
            "RuntimeError: Tried to erase Node a but it still had 1 users in the graph: {neg: None}!");
  EXPECT_EQ(error_of([&] { other.erase_node(b); }), "RuntimeError: Attempting to remove neg from wrong graph!");
  g.erase_node(b);
  EXPECT_TRUE(b->erased());
  EXPECT_EQ(a->num_users(), 0u);
  EXPECT_EQ(b->name(), "neg");  // readable after its end
  EXPECT_EQ(b->args().to_string(), "(None,)");
  EXPECT_EQ(g.size(), 1u);
  static std::string warned;
  const auto before = support::set_warning_handler([](const std::string& m) { warned = m; });
  g.erase_node(b);
  support::set_warning_handler(before);
  EXPECT_EQ(warned, "erase_node(neg) on an already erased node");
}

TEST(Graph, AnErasedNodeLosesItsInputsAndNobodyElseDoes) {
  Graph g;
  Node* x = g.placeholder("x");
  const Argument inner = t({x, 1});
  Node* n = g.call_method("cat", t({Argument::list(inner.items()), x}));
  Node* twin = g.node_copy(*n);  // shares the arguments
  const Argument held = n->args();
  g.erase_node(n);
  EXPECT_EQ(n->args().to_string(), "([None, 1], None)");
  EXPECT_EQ(held.to_string(), "([%x, 1], %x)");
  EXPECT_EQ(twin->args().to_string(), held.to_string());
  Node* sole = g.call_method("cat", t({t({x, 2}), 3}));
  g.erase_node(sole);
  EXPECT_EQ(sole->args().to_string(), "((None, 2), 3)");
  EXPECT_FALSE(sole->args().contains_node());
  EXPECT_EQ(inner.to_string(), "(%x, 1)");
  EXPECT_EQ(x->num_users(), 1u);
  g.lint();
}

TEST(Graph, IterationSurvivesErasingAndInserting) {
  Graph g;
  Node* x = g.placeholder("x");
  for (int i = 0; i < 5; ++i) g.call_method("neg", t({x}));
  Names seen;
  for (Node* n : g.nodes()) {
    seen.emplace_back(n->name());
    if (n->name() == "neg_1") {
      Node *next = n->next(), *after = next->next();
      g.erase_node(n);
      g.erase_node(next);
      const auto scope = g.inserting_before(after);
      g.call_method("inserted", t({x}));
    }
  }
  // An erased node leads on to what followed it, so what was put in its place is not visited, as in torch.fx.
  EXPECT_EQ(seen, (Names{"x", "neg", "neg_1", "neg_3", "neg_4"}));
  Names backwards;
  for (Node* n : g.nodes().reversed()) backwards.emplace_back(n->name());
  EXPECT_EQ(backwards, (Names{"neg_4", "neg_3", "inserted", "neg", "x"}));
}

TEST(Graph, InsertPointsAreScopesOrPermanent) {
  Graph g;
  Node* a = g.placeholder("a");
  Node* b = g.placeholder("b");
  {
    const auto scope = g.inserting_before(b);
    g.call_method("m1", t({a}));
    {
      const auto inner = g.inserting_after(a);
      g.call_method("m2", t({a}));
      g.call_method("m3", t({a}));  // directly behind a too, as in torch.fx
    }
    g.call_method("m4", t({a}));
  }
  g.call_method("m5", t({a}));
  EXPECT_EQ(names(g), (Names{"a", "m3", "m2", "m1", "m4", "b", "m5"}));
  try {
    const auto scope = g.inserting_before(a);
    throw 1;
  } catch (int) {
  }
  g.call_method("last", t({a}));
  EXPECT_EQ(g.root()->prev()->name(), "last");
  g.inserting_before().release();
  g.placeholder("first");
  g.placeholder("second");
  EXPECT_EQ(g.nodes().begin().operator*()->name(), "second");
  Graph other;
  EXPECT_EQ(error_of([&] { (void)other.inserting_before(a); }),
            "AssertionError: Node to insert before is not in graph.");
  EXPECT_EQ(error_of([&] { (void)other.inserting_after(a); }), "AssertionError: Node to insert after is not in graph.");
}

TEST(Graph, AnInsertPointWhoseNodeWasErasedStandsBeforeItsSuccessor) {
  Graph g;
  Node* a = g.placeholder("a");
  Node* b = g.call_method("neg", t({a}));
  g.placeholder("c");
  const auto scope = g.inserting_before(b);
  g.erase_node(b);
  g.call_method("relu", t({a}));
  EXPECT_EQ(names(g), (Names{"a", "relu", "c"}));
}

TEST(Graph, NodesMoveWithinTheirGraphOnly) {
  Graph g, other;
  Node *a = g.placeholder("a"), *b = g.placeholder("b"), *c = g.placeholder("c");
  a->prepend(c);
  EXPECT_EQ(names(g), (Names{"c", "a", "b"}));
  EXPECT_TRUE(*c < *a);
  b->append(c);
  EXPECT_EQ(names(g), (Names{"a", "b", "c"}));
  EXPECT_FALSE(*c < *b);
  EXPECT_EQ(error_of([&] { a->prepend(other.placeholder("z")); }),
            "AssertionError: Attempting to move a Node into a different Graph");
}

TEST(Graph, TargetsOfTheWrongKindAreRefused) {
  Graph g;
  g.placeholder("x");
  EXPECT_EQ(error_of([&] { g.create_node(Opcode::CallFunction, "relu"); }),
            "ValueError: Node [graph = graph():\n    %x : [num_users=0] = placeholder[target=x], name = 'relu'] target "
            "relu has type str but a Callable is expected");
  EXPECT_STARTS_WITH(error_of([&] { g.create_node(Opcode::CallMethod, op("add")); }), "ValueError: Node [graph");
  EXPECT_EQ(error_of([&] { g.create_node(Opcode::Root, ""); }), "AssertionError: op 'root' is not in _legal_ops");
}

TEST(Graph, CopiesKeepNamesTypesMetaAndTargets) {
  Graph g;
  const auto callee = make_function("__main__.f", nullptr);
  Node* x = g.placeholder("x", Argument(1), "int");
  Node* f = g.call_function(callee, t({x}), {}, {}, "special");
  f->meta().set("tag", "red");
  g.output(t({f, x}), "tuple");
  g.output_node()->meta().set("o", 1);
  NodeMap map;
  const GraphPtr copy = g.copy(&map);
  EXPECT_EQ(copy->to_string(), g.to_string());
  Node* copied = map.at(f).as_node();
  EXPECT_EQ(&copied->graph(), copy.get());
  EXPECT_EQ(copied->target(), Argument(callee));
  EXPECT_EQ(*copied->meta().find("tag"), Argument("red"));
  EXPECT_EQ(*copy->output_node()->meta().find("o"), Argument(1));
  copied->meta().set("tag", "blue");
  EXPECT_EQ(*f->meta().find("tag"), Argument("red"));
  copy->lint();
}

TEST(Graph, GraphCopyInlinesWithASeededMap) {
  Graph inner;
  Node* a = inner.placeholder("a");
  inner.output(Argument::list({inner.call_method("neg", t({a})), 3}));
  Graph g;
  Node* x = g.placeholder("x");
  NodeMap map{{a, x}};
  const auto result = g.graph_copy(inner, map);
  EXPECT_EQ(result->to_string(), "[%neg, 3]");
  g.output(*result);
  EXPECT_EQ(names(g), (Names{"x", "neg", "output"}));
  g.lint();
  Graph no_output;
  NodeMap empty;
  EXPECT_FALSE(g.graph_copy(no_output, empty));
}

TEST(Graph, FindNodesFollowsEveryEdit) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_method("neg", t({x}));
  Node* b = g.call_method("relu", t({x}));
  EXPECT_EQ(names(g.find_nodes(Opcode::CallMethod)), (Names{"neg", "relu"}));
  Node* c = g.call_method("neg", t({x}));
  a->prepend(c);
  EXPECT_EQ(names(g.find_nodes(Opcode::CallMethod, "neg")), (Names{"neg_1", "neg"}));
  EXPECT_EQ(names(g.find_nodes(Opcode::CallMethod, "neg", false)), (Names{"neg", "neg_1"}));
  g.erase_node(a);
  b->set_target("neg");
  EXPECT_EQ(names(g.find_nodes(Opcode::CallMethod, "neg")), (Names{"neg_1", "relu"}));
  Node* f = g.call_function(op("add"), t({x, x}));
  EXPECT_EQ(g.find_nodes(Opcode::CallFunction, op("add")), std::vector<Node*>{f});
  EXPECT_TRUE(g.find_nodes(Opcode::CallFunction, op("mul")).empty());
  EXPECT_STARTS_WITH(error_of([&] { (void)g.find_nodes(Opcode::CallFunction); }), "AssertionError");
}

TEST(Graph, WrappersAreReleasedWithTheGraphEvenOfErasedNodes) {
  static int released;
  released = 0;
  int token = 0;
  {
    Graph g;
    g.set_wrapper_release([](void*) { ++released; });
    Node* a = g.placeholder("a");
    a->set_wrapper(&token);
    g.placeholder("b")->set_wrapper(&token);
    g.erase_node(a);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 2);
}

TEST(Graph, ObserversAreTold) {
  struct Log : GraphObserver {
    void created(Node* n) override { text += "+" + std::string(n->name()); }
    void erased(Node* n) override { text += "-" + std::string(n->name()); }
    void replaced(Node* o, const Argument& n, Node* u) override {
      text += " " + std::string(o->name()) + ">" + n.repr() + "@" + std::string(u->name());
    }
    std::string text;
  } log;
  Graph g;
  g.set_observer(&log);
  Node *a = g.placeholder("a"), *b = g.placeholder("b");
  g.call_method("neg", t({a}));
  a->replace_all_uses_with(b);
  g.erase_node(a);
  EXPECT_EQ(log.text, "+a+b+neg a>b@neg-a");
}

TEST(Graph, NodesOfAnotherGraphDoNotEndInDanglingEdges) {
  GraphPtr a = Graph::create();
  Node* x = a->placeholder("x");
  {
    Graph b;
    b.call_method("neg", t({x}));
    EXPECT_EQ(x->num_users(), 1u);
  }
  EXPECT_EQ(x->num_users(), 0u);
  GraphPtr b = Graph::create();
  Node* n = b->call_method("neg", t({x}));
  a.reset();  // kept by b
  EXPECT_EQ(n->arg(0).as_node()->name(), "x");
}

}  // namespace
}  // namespace fxjit::fx::test
