// Seed checklist S2 (the primitive library) as far as it has a meaning without torch: rows S2.2 to S2.27.
#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

GraphModuleRef traced_foo() {
  return symbolic_trace([](Proxy x, Proxy y) { return foo(x, y); }, {"x", "y"});
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double foo_of(double x, double y) { return sigmoid(x) + sigmoid(y); }

// What the seed's inline_lowp_func does, with its parameter named as one pleases.
void inline_with_proxies(Node* call, const Callable* body) {
  Graph& g = call->graph();
  GraphAppendingTracer tracer(g);
  const auto scope = g.inserting_before(call);
  const Argument result = body->trace_body(tracer, call->args().items(), call->kwargs());
  call->replace_all_uses_with(result.as_node());
  g.erase_node(call);
}

TEST(Composites, S2_02_S2_03_AWrappedFunctionStillRunsAndRecordsNothingWithoutProxies) {
  const auto twice = wrap("twice", [](auto x) { return x + x; });
  EXPECT_EQ(twice(4), 8);
  EXPECT_EQ(twice(std::string("a")), "aa");
  const auto target = twice.target();
  Graph g;
  const Proxy p = twice(Proxy(g.placeholder("x")));
  EXPECT_EQ(g.size(), 2u);
  EXPECT_EQ(p.node()->target(), Argument(target));
  EXPECT_EQ(twice(4), 8);
  EXPECT_EQ(g.size(), 2u);
}

TEST(Composites, S2_04_CallsAreLeavesWithTheFunctionsNames) {
  const auto gm = traced_foo();
  EXPECT_EQ(names(gm->graph()), (Names{"x", "y", "sigmoid_lowp", "sigmoid_lowp_1", "add_lowp", "output"}));
  EXPECT_DOUBLE_EQ(run(*gm, {tensor(1), tensor(2)}), foo_of(1, 2));
}

TEST(Composites, S2_05_TheTextNamesCompositesByQualifiedName) {
  EXPECT_NE(
      traced_foo()->code().find("%add_lowp : [num_users=1] = call_function[target=add_lowp](args = (%sigmoid_lowp, "
                                "%sigmoid_lowp_1), kwargs = {})"),
      std::string::npos);
}

TEST(Composites, S2_06_TargetsKeepTheirIdentityAcrossCopies) {
  const auto gm = traced_foo();
  const GraphPtr copy = gm->graph().copy();
  EXPECT_EQ(copy->find_nodes(Opcode::CallFunction, sigmoid_lowp().target()).size(), 2u);
  EXPECT_EQ(copy->find_nodes(Opcode::CallFunction, add_lowp().target())[0]->callable().qualified_name(), "add_lowp");
}

TEST(Composites, S2_07_To_S2_14_InliningWhileIterating) {
  const auto gm = traced_foo();
  Names visited;
  for (Node* n : gm->graph().nodes()) {
    visited.emplace_back(n->name());
    if (n->op() == Opcode::CallFunction && &n->callable() == sigmoid_lowp().target().get()) {
      const InsertPoint before = gm->graph().insert_point();
      inline_with_proxies(n, &n->callable());
      EXPECT_EQ(gm->graph().insert_point().anchor, before.anchor);
    }
  }
  EXPECT_EQ(visited, (Names{"x", "y", "sigmoid_lowp", "sigmoid_lowp_1", "add_lowp", "output"}));
  EXPECT_EQ(names(gm->graph()),
            (Names{"x", "y", "float_1", "sigmoid", "half", "float_2", "sigmoid_1", "half_1", "add_lowp", "output"}));
  gm->graph().lint();
  EXPECT_EQ(gm->graph().find_nodes(Opcode::CallFunction, add_lowp().target())[0]->args().to_string(),
            "(%half, %half_1)");
}

TEST(Composites, S2_09_TheInsertPointIsRestoredWhenABodyThrows) {
  const auto bad = wrap("bad", [](auto x) {
    if (x) return x;
    return x;
  });
  const auto gm = symbolic_trace([&](Proxy x) { return bad(x); });
  const InsertPoint before = gm->graph().insert_point();
  Node* call = gm->graph().find_nodes(Opcode::CallFunction, bad.target())[0];
  EXPECT_STARTS_WITH(error_of([&] { inline_call(call); }), "TraceError: symbolically traced");
  EXPECT_EQ(gm->graph().insert_point().anchor, before.anchor);
  EXPECT_EQ(gm->graph().insert_point().after, before.after);
}

TEST(Composites, S2_10_ListsOfProxiesPassThrough) {
  const auto total = wrap("total", [](std::vector<Proxy> xs, int64_t by) {
    Proxy sum = xs[0];
    for (size_t i = 1; i < xs.size(); ++i) sum += xs[i];
    return sum * by;
  });
  const auto gm = symbolic_trace([&](Proxy x, Proxy y) { return total(std::vector<Proxy>{x, y}, int64_t{3}); });
  Node* call = gm->graph().find_nodes(Opcode::CallFunction, total.target())[0];
  EXPECT_EQ(call->args().to_string(), "([%x, %y], 3)");
  EXPECT_EQ(run(*gm, {tensor(1), tensor(2)}), 9);
  inline_call(call);
  EXPECT_EQ(names(gm->graph()), (Names{"x", "y", "add", "mul", "output"}));
}

TEST(Composites, S2_11_ABodyCalledOnProxiesEmitsItsOperations) {
  Graph g;
  GraphAppendingTracer tracer(g);
  Node* x = g.placeholder("x");
  const Argument args[] = {x};
  const Argument r = sigmoid_lowp().target()->trace_body(tracer, args, {});
  EXPECT_EQ(r.as_node()->name(), "half");
  EXPECT_EQ(g.find_nodes(Opcode::CallMethod).size(), 3u);
}

TEST(Composites, S2_13_EditsCountAfterRecompile) {
  const auto gm = traced_foo();
  const std::string old_code = gm->code();
  const auto old = gm->snapshot();
  inline_composites(gm->graph());
  EXPECT_EQ(gm->code(), old_code);
  gm->recompile();
  EXPECT_NE(gm->code(), old_code);
  EXPECT_EQ(old->graph->to_string(), old_code);  // alive as long as somebody runs it
  EXPECT_EQ(gm->snapshot()->version, old->version + 1);
}

TEST(Composites, S2_15_S2_17_InliningByFilter) {
  const auto gm = traced_foo();
  EXPECT_EQ(
      inline_composites(gm->graph(), [](const Node& n) { return &n.callable() == sigmoid_lowp().target().get(); }), 2u);
  EXPECT_EQ(gm->graph().find_nodes(Opcode::CallFunction, add_lowp().target()).size(), 1u);
  EXPECT_DOUBLE_EQ(run(*gm, {tensor(1), tensor(2)}), foo_of(1, 2));
  EXPECT_EQ(inline_composites(gm->graph()), 1u);
  EXPECT_TRUE(gm->graph().find_nodes(Opcode::CallFunction, add_lowp().target()).empty());
  EXPECT_DOUBLE_EQ(run(*gm, {tensor(1), tensor(2)}), foo_of(1, 2));
}

struct InliningTracer : Tracer {
  Node* create_node(Opcode o, const Target& target, Argument args, Argument kwargs,
                    std::optional<std::string_view> name, Argument type) override {
    if (o == Opcode::CallFunction && target == Argument(add_lowp().target())) {
      for (const Argument& a : args.items()) EXPECT_TRUE(a.is_node());
      GraphAppendingTracer tracer(graph());
      return add_lowp().target()->trace_body(tracer, args.items(), kwargs).as_node();
    }
    return Tracer::create_node(o, target, std::move(args), std::move(kwargs), name, std::move(type));
  }
};

TEST(Composites, S2_18_To_S2_22_ACustomTracerInlinesOnTheFly) {
  InliningTracer tracer;
  const GraphPtr g = tracer.trace(trace_function([](Proxy x, Proxy y) { return foo(x, y); }));
  EXPECT_EQ(names(*g),
            (Names{"x", "y", "sigmoid_lowp", "sigmoid_lowp_1", "float_1", "float_2", "add", "half", "output"}));
  EXPECT_EQ(g->find_nodes(Opcode::CallFunction, op("add")).size(), 1u);
  const auto gm = GraphModule::create(tracer.root(), g);
  EXPECT_DOUBLE_EQ(run(*gm, {tensor(1), tensor(2)}), foo_of(1, 2));
}

TEST(Composites, S2_23_NestedCompositesStayLeavesUnlessRecursive) {
  const auto outer = wrap("outer", [](auto x) { return sigmoid_lowp()(x).neg(); });
  const auto trace = [&] { return symbolic_trace([&](Proxy x) { return outer(x); }); };
  const auto flat = trace(), deep = trace();
  inline_composites(flat->graph());
  EXPECT_EQ(names(flat->graph()), (Names{"x", "sigmoid_lowp", "neg", "output"}));
  inline_composites(deep->graph(), {}, true);
  EXPECT_EQ(names(deep->graph()), (Names{"x", "float_1", "sigmoid", "half", "neg", "output"}));
}

const auto& min_max() {
  static const auto f = wrap("min_max", [](auto x) { return std::tuple{x.neg(), x + 1}; });
  return f;
}

TEST(Composites, S2_24_SeveralResults) {
  const auto body = [](Proxy x) {
    auto [a, b] = min_max()(x);
    return a * b;
  };
  const auto gm = symbolic_trace(body);
  EXPECT_EQ(names(gm->graph()), (Names{"x", "min_max", "getitem", "getitem_1", "mul", "output"}));
  EXPECT_EQ(run(*gm, {tensor(2)}), -6);
  inline_composites(gm->graph());
  EXPECT_EQ(names(gm->graph()), (Names{"x", "neg", "add", "mul", "output"}));
  gm->graph().lint();
  EXPECT_EQ(run(*gm, {tensor(2)}), -6);

  struct Through : Tracer {
    bool is_leaf_function(const Callable&) override { return false; }
  } tracer;
  EXPECT_EQ(names(*tracer.trace(trace_function(body))), (Names{"x", "neg", "add", "mul", "output"}));
}

TEST(Composites, S2_24_AWholeTupleThatIsUsedBecomesAStructure) {
  const auto gm = symbolic_trace([](Proxy x) { return x; });
  Node* x = gm->graph().find_nodes(Opcode::Placeholder)[0];
  Node* call;
  {
    const auto scope = gm->graph().inserting_after(x);
    call = gm->graph().call_function(min_max().target(), Argument::tuple({x}));
  }
  gm->graph().output_node()->set_args(Argument::tuple({call}));
  const Argument result = inline_call(call);
  EXPECT_EQ(result.to_string(), "(%neg, %add)");
  EXPECT_EQ(gm->graph().output_node()->format_node(), "return (neg, add)");
}

TEST(Composites, S2_25_ATensorConstantInABodyIsHoistedToTheModule) {
  const ObjectRef c = tensor(5);
  const auto biased = wrap("biased", [c](auto x) { return x + c; });
  const auto gm = symbolic_trace([&](Proxy x) { return biased(x) * biased(x); });
  EXPECT_EQ(run(*gm, {tensor(1)}), 36);
  inline_composites(gm->graph());
  for (Node* n : gm->graph().find_nodes(Opcode::GetAttr)) EXPECT_EQ(n->target_str(), "_tensor_constant0");
  EXPECT_EQ(gm->attribute("_tensor_constant0"), c);
  gm->graph().lint();
  gm->recompile();
  EXPECT_EQ(run(*gm, {tensor(1)}), 36);
}

TEST(Composites, S2_26_TracesLeaveNoState) {
  EXPECT_EQ(traced_foo()->graph().to_string(), traced_foo()->graph().to_string());
}

TEST(Composites, S2_27_IsLeafFunctionOpensChosenFunctions) {
  struct Open : Tracer {
    bool is_leaf_function(const Callable& f) override { return f.qualified_name() != "add_lowp"; }
  } tracer;
  EXPECT_EQ(names(*tracer.trace(trace_function([](Proxy x, Proxy y) { return foo(x, y); }))),
            (Names{"x", "y", "sigmoid_lowp", "sigmoid_lowp_1", "float_1", "float_2", "add", "half", "output"}));
}

TEST(Composites, LeavesForeverAreNeverInlined) {
  const auto fixed = wrap("fixed", [](auto x) { return x.neg(); }, {.leaf = true});
  const auto gm = symbolic_trace([&](Proxy x) { return fixed(x); });
  EXPECT_EQ(inline_composites(gm->graph()), 0u);
  EXPECT_EQ(run(*gm, {tensor(2)}), -2);
}

TEST(Composites, MixedTracersAreRefused) {
  Graph a, b;
  const Proxy x(a.placeholder("x")), y(b.placeholder("y"));
  EXPECT_EQ(error_of([&] { add_lowp()(x, y); }),
            "RuntimeError: Found multiple different tracers while trying to trace operations add_lowp");
}

TEST(Composites, KeywordsAndMisfitsAreExplained) {
  Graph g;
  GraphAppendingTracer tracer(g);
  const Argument args[] = {g.placeholder("x")};
  EXPECT_STARTS_WITH(error_of([&] { add_lowp().target()->trace_body(tracer, args, {}); }),
                     "TypeError: add_lowp() cannot be traced with arguments (%x,)");
  EXPECT_STARTS_WITH(error_of([&] { sigmoid_lowp().target()->trace_body(tracer, args, Argument::dict({{"k", 1}})); }),
                     "TypeError: sigmoid_lowp() takes no keyword arguments");
  EXPECT_STARTS_WITH(error_of([&] { inline_call(args[0].as_node()); }), "TypeError: inline_call: x is no call");
}

}  // namespace
}  // namespace fxjit::fx::test
