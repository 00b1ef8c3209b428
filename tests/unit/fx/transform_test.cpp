// Passes over FX graphs, parts, the minimiser and the Transformer, in the world of fx_test_util.h.
#include <cmath>

#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

CallableRef add() { return builtin_function("_operator.add"); }
CallableRef mul() { return builtin_function("_operator.mul"); }

GraphModuleRef module_of(const GraphPtr& g, const ModuleRef& root = make_ref<BasicModule>()) {
  return GraphModule::create(root, g);
}

TEST(Cse, EqualCallsBecomeOne) {
  GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  Node* a = g->call_function(add(), Argument::tuple({x, 1}));
  Node* b = g->call_function(add(), Argument::tuple({x, 1}));
  Node* c = g->call_method("relu", Argument::tuple({a}));
  Node* d = g->call_method("relu", Argument::tuple({b}));
  g->output(Argument::tuple({c, d}));
  EXPECT_EQ(eliminate_common_subexpressions(*g), 2u);
  EXPECT_EQ(names(*g), (Names{"x", "add", "relu", "output"}));
  g->lint();
}

TEST(Cse, TypesCountAndBannedCallsStay) {
  GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  std::vector<Argument> results;
  for (const Argument& v : {Argument(1), Argument(1.0), Argument(true), Argument(0.0), Argument(-0.0)}) {
    results.push_back(g->call_function(add(), Argument::tuple({x, v})));
  }
  results.push_back(g->call_function(mul(), Argument::tuple({x, 2})));
  results.push_back(g->call_function(mul(), Argument::tuple({x, 2})));
  g->output(Argument::tuple(results));
  const auto banned = [](const Node& n) { return n.name().starts_with("mul"); };
  EXPECT_EQ(eliminate_common_subexpressions(*g, banned), 0u);
  EXPECT_EQ(eliminate_common_subexpressions(*g), 1u);
}

TEST(Cse, NothingBeforeAWriteAndNothingRandom) {
  GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  Node* a = g->call_method("sigmoid", Argument::tuple({x}));
  Node* b = g->call_method("sigmoid", Argument::tuple({x}));
  g->call_method("add_", Argument::tuple({a, 1}));
  Node* c = g->call_method("neg", Argument::tuple({b}));
  Node* d = g->call_method("neg", Argument::tuple({b}));
  Node* e = g->call_method("bernoulli", Argument::tuple({x}));
  Node* f = g->call_method("bernoulli", Argument::tuple({x}));
  g->output(Argument::tuple({a, c, d, e, f}));
  EXPECT_EQ(eliminate_common_subexpressions(*g), 1u);
  EXPECT_EQ(names(*g), (Names{"x", "sigmoid", "sigmoid_1", "add_", "neg", "bernoulli", "bernoulli_1", "output"}));
}

Ref<BasicModule> weights() {
  auto root = make_ref<BasicModule>();
  root->register_parameter("w", parameter(3));
  root->register_buffer("b", tensor(4));
  return root;
}

TEST(FoldConstants, AttributesAlone) {
  GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  Node* w = g->get_attr("w");
  Node* s = g->call_function(mul(), Argument::tuple({w, g->get_attr("b")}));
  Node* r = g->call_method("neg", Argument::tuple({s}));
  g->output(g->call_function(add(), Argument::tuple({g->call_function(mul(), Argument::tuple({x, r})), w})));
  auto m = module_of(g, weights());
  EXPECT_EQ(names(constant_nodes(*g)), (Names{"w", "b", "mul", "neg"}));
  const double before = run(*m, {tensor(2)});
  Resolver resolver;
  EXPECT_EQ(fold_constants(*m, &resolver), 1u);
  EXPECT_EQ(resolver.calls, 1);  // neg; mul is a function
  EXPECT_EQ(names(m->graph()), (Names{"x", "w", "_folded_constant_0", "mul_1", "add", "output"}));
  EXPECT_EQ(run(*m, {tensor(2)}), before);
  EXPECT_EQ(before, -21);
  m->graph().lint();
  EXPECT_EQ(fold_constants(*m, &resolver), 0u);
}

TEST(FoldConstants, NotWhereSomethingIsWrittenOrSkipped) {
  GraphPtr g = Graph::create();
  Node* w = g->get_attr("w");
  Node* s = g->call_method("neg", Argument::tuple({w}));
  g->output(s);
  const auto skip = [](const Node& n) { return n.name() == "neg"; };
  EXPECT_TRUE(constant_nodes(*g, skip).empty());
  {
    const InsertScope scope = g->inserting_before(s);
    g->call_method("add_", Argument::tuple({w, 1}));
  }
  EXPECT_TRUE(constant_nodes(*g).empty());
}

// relu(x + 1) * w, and neg of it
GraphModuleRef chain() {
  GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  Node* a = g->call_function(add(), Argument::tuple({x, 1}));
  Node* r = g->call_method("relu", Argument::tuple({a}));
  Node* p = g->call_function(mul(), Argument::tuple({r, g->get_attr("w")}));
  g->output(g->call_method("neg", Argument::tuple({p})));
  return module_of(g, weights());
}

std::vector<Node*> nodes_named(Graph& g, const Names& wanted) {
  std::vector<Node*> out;
  for (Node* n : g.nodes()) {
    if (std::find(wanted.begin(), wanted.end(), n->name()) != wanted.end()) out.push_back(n);
  }
  return out;
}

TEST(ExtractPart, InputsOutputsAndAttributes) {
  auto m = chain();
  const Part part = extract_part(*m, nodes_named(m->graph(), {"mul", "relu"}));
  EXPECT_EQ(names(part.inputs), Names{"add"});
  EXPECT_EQ(names(part.outputs), Names{"mul"});
  EXPECT_EQ(names(part.module->graph()), (Names{"add", "w", "relu", "mul", "output"}));
  Resolver resolver;
  EXPECT_EQ(number(Interpreter(*part.module, &resolver).run({tensor(5)})[0]), 15);
}

TEST(ExtractPart, Refusals) {
  auto m = chain();
  Graph& g = m->graph();
  EXPECT_EQ(error_of([&] { extract_part(*m, nodes_named(g, {"add", "mul"})); }),
            "ValueError: extract_part: mul reads relu, which is outside of the part and depends on it");
  EXPECT_EQ(error_of([&] { extract_part(*m, nodes_named(g, {"x"})); }),
            "ValueError: extract_part: x is an input or output of the graph");
  EXPECT_EQ(error_of([&] { extract_part(*m, {}); }), "ValueError: extract_part: no nodes were given");
}

// Runs a part in the interpreter; calls named in `broken` add one to their result.
class Broken : public Interpreter {
 public:
  Broken(GraphModule& m, OperatorResolver* r, const Names& broken) : Interpreter(m, r), broken_(broken) {}
  Value run_node(const Node& n) override {
    Value v = Interpreter::run_node(n);
    const bool call = n.op() == Opcode::CallFunction || n.op() == Opcode::CallMethod;
    if (!call || std::find(broken_.begin(), broken_.end(), n.name()) == broken_.end()) return v;
    return tensor(number(v) + 1);
  }

 private:
  const Names& broken_;
};

MinimizeResult find(GraphModule& m, const Names& broken, MinimizeOptions options, int* runs = nullptr) {
  const auto runner = [runs](Names bad) {
    return [bad = std::move(bad), runs](GraphModule& part, std::span<const Value> inputs) {
      if (runs) ++*runs;
      Resolver resolver;
      return Broken(part, &resolver, bad).run(inputs);
    };
  };
  const std::vector<Value> inputs = {tensor(2)};
  return minimize(
      m, inputs, runner({}), runner(broken), [](const Value& a, const Value& b) { return number(a) == number(b); },
      options);
}

TEST(Minimize, FindsThePlantedNode) {
  for (auto method : {MinimizeMethod::Sequential, MinimizeMethod::Binary, MinimizeMethod::Accumulate}) {
    for (const char* name : {"add", "relu", "mul", "neg"}) {
      auto m = chain();
      EXPECT_EQ(names(find(*m, {name}, {method}).culprits), Names{name});
    }
    auto m = chain();
    EXPECT_TRUE(find(*m, {}, {method}).culprits.empty());
  }
  auto m = chain();
  EXPECT_EQ(names(find(*m, {"add", "neg"}, {MinimizeMethod::Binary}).culprits), Names{"add"});
  EXPECT_EQ(names(find(*m, {"add", "neg"}, {MinimizeMethod::Binary, true}).culprits), (Names{"add", "neg"}));
  EXPECT_EQ(names(find(*m, {"add", "neg"}, {MinimizeMethod::Sequential, true}).culprits), (Names{"add", "neg"}));
}

TEST(Minimize, BinaryTakesFewRuns) {
  GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  for (int i = 0; i < 256; ++i) x = g->call_function(add(), Argument::tuple({x, 1}));
  g->output(x);
  auto m = module_of(g);
  const MinimizeResult result = find(*m, {"add_200"}, {});
  EXPECT_EQ(names(result.culprits), Names{"add_200"});
  EXPECT_LE(result.log.size(), 18u);
}

TEST(Minimize, ErrorsOfTheSecondRunnerAreDifferences) {
  auto m = chain();
  const std::vector<Value> inputs = {tensor(2)};
  const auto good = [](GraphModule& part, std::span<const Value> in) {
    Resolver resolver;
    return Interpreter(part, &resolver).run(in);
  };
  const auto bad = [&](GraphModule& part, std::span<const Value> in) {
    for (Node* n : part.graph().nodes()) {
      if (n->name() == "relu" && n->op() == Opcode::CallMethod) throw RuntimeError("no kernel for relu");
    }
    return good(part, in);
  };
  const auto equal = [](const Value& a, const Value& b) { return number(a) == number(b); };
  const MinimizeResult result = minimize(*m, inputs, good, bad, equal);
  EXPECT_EQ(names(result.culprits), Names{"relu"});
  EXPECT_EQ(result.log.back(), "relu: no kernel for relu");
  EXPECT_EQ(error_of([&] { minimize(*m, {}, good, bad, equal); }), "ValueError: minimize: no input was given for x");
}

class SigmoidForRelu final : public Transformer {
 public:
  using Transformer::Transformer;
  Value call_method(const Argument& target, std::span<const Value> args, const Value& kwargs) override {
    if (target.as_str() == "relu") return Proxy(args[0].as_node(), tracer()).sigmoid().neg();
    return Transformer::call_method(target, args, kwargs);
  }
};

TEST(Transformer, NoopIsEqualAndSharesAttributes) {
  auto m = chain();
  for (Node* n : m->graph().nodes()) n->meta().set("source_line", n->name());
  auto t = Transformer(*m).transform();
  EXPECT_EQ(t->graph().to_string(), m->graph().to_string());
  EXPECT_EQ(t->attribute("w"), m->attribute("w"));
  for (Node* n : t->graph().nodes()) EXPECT_EQ(n->meta().find("source_line")->as_str(), n->name());
  EXPECT_EQ(run(*t, {tensor(2)}), run(*m, {tensor(2)}));
}

TEST(Transformer, OverriddenMethodsRecordWhatTheyReturn) {
  auto m = chain();
  nodes_named(m->graph(), {"relu"})[0]->meta().set("source_line", "here");
  auto t = SigmoidForRelu(*m).transform();
  t->graph().lint();
  EXPECT_EQ(names(t->graph()), (Names{"x", "add", "sigmoid", "neg", "w", "mul", "neg_1", "output"}));
  EXPECT_EQ(nodes_named(t->graph(), {"neg"})[0]->meta().find("source_line")->as_str(), "here");
  EXPECT_NEAR(run(*t, {tensor(2)}), 3 / (1 + std::exp(-3.0)), 1e-12);
}

}  // namespace
}  // namespace fxjit::fx::test
