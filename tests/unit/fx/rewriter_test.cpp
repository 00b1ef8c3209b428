// Matching and replacing of subgraphs.
#include <algorithm>

#include "fx_test_util.h"
#include "fxjit/fx/subgraph_rewriter.h"
#include "fxjit/fx/topology.h"

namespace fxjit::fx::test {
namespace {

GraphPtr graph_of(auto fn) { return symbolic_trace(fn)->graph_ptr(); }

std::string text(const Graph& g) {
  std::string out;
  for (Node* n : g.nodes()) out += n->format_node() + "\n";
  return out;
}

TEST(Rewriter, ReplacesEveryMatch) {
  const auto m = symbolic_trace([](Proxy x, Proxy y) {
    Proxy a = x.neg() + x.relu(), b = y.neg() + y.relu();
    return a * b;
  });
  const auto done =
      replace_pattern(*m, [](Proxy x) { return x.neg() + x.relu(); }, [](Proxy x) { return x.sigmoid(); });
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(names(m->graph()), (Names{"x", "y", "sigmoid", "sigmoid_1", "mul", "output"}));
  EXPECT_EQ(names(done[1].replacements), Names{"sigmoid_1"});
  EXPECT_EQ(done[0].match.placeholder_nodes[0].as_node()->name(), "x");
  EXPECT_EQ(run(*m, {tensor(0), tensor(0)}), 0.25);  // recompiled
}

TEST(Rewriter, ConstantsAreMatchedOrCaptured) {
  const auto program = [](Proxy x) {
    Proxy a = (x + 1) * 2, b = (x + 3) * 2;
    return a - b;
  };
  const auto exact = symbolic_trace(program), captured = symbolic_trace(program), ignored = symbolic_trace(program);
  EXPECT_EQ(replace_pattern(*exact, [](Proxy x) { return x + 1; }, [](Proxy x) { return x.neg(); }).size(), 1u);
  const auto done =
      replace_pattern(*captured, [](Proxy x, Proxy c) { return (x + c) * 2; }, [](Proxy x, Proxy c) { return x - c; });
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].match.placeholder_nodes[1], Argument(3));
  EXPECT_EQ(run(*captured, {tensor(10)}), 9 - 7);
  RewriteOptions options;
  options.ignore_literals = true;
  EXPECT_EQ(
      replace_pattern(*ignored, [](Proxy x) { return x + 7; }, [](Proxy x) { return x.neg(); }, options).size(), 2u);
}

TEST(Rewriter, FiltersAndCallback) {
  const auto m = symbolic_trace([](Proxy x) { return (x + 1) + 2; });
  const auto pattern = symbolic_trace([](Proxy x, Proxy c) { return x + c; });
  GraphModuleRef made;
  RewriteOptions options;
  options.match_filters = {[&](const InternalMatch& match, const Graph& original, const Graph& p) {
    EXPECT_EQ(&original, &m->graph());
    EXPECT_EQ(&p, &pattern->graph());
    return match.placeholder_nodes[1] == Argument(2);
  }};
  options.replacement_callback = [&](const InternalMatch& match, const Graph&, const Graph&) {
    const int64_t c = match.placeholder_nodes[1].as_int();
    made = symbolic_trace([=](Proxy x, Proxy) { return x * (10 * c); });
    return static_cast<const Graph*>(&made->graph());
  };
  EXPECT_EQ(replace_pattern(*m, *pattern, nullptr, options).size(), 1u);
  EXPECT_EQ(run(*m, {tensor(1)}), 40);
}

TEST(Rewriter, AttributesComeFromTheReplacement) {
  const auto root = make_ref<BasicModule>();
  root->register_parameter("scale", parameter(3));
  const GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  g->output(g->call_function(op("mul"), Argument::tuple({x, g->get_attr("scale")})));
  const auto replacement = GraphModule::create(root, g), pattern = symbolic_trace([](Proxy v) { return v.relu(); });
  const auto m = symbolic_trace([](Proxy v) { return v.relu() + 1; });
  replace_pattern(*m, *pattern, replacement.get());
  EXPECT_EQ(m->attribute_kind("scale"), AttributeKind::Parameter);
  EXPECT_EQ(run(*m, {tensor(2)}), 7);
  const auto lacking = GraphModule::adopt(make_ref<BasicModule>(), g->copy());
  const auto other = symbolic_trace([](Proxy v) { return v.relu() + 1; });
  EXPECT_STARTS_WITH(
      error_of([&] { replace_pattern(*other, *pattern, lacking.get()); }),
      "RuntimeError: Attempted to create a \"get_attr\" node during subgraph rewriting with target scale");
}

TEST(Rewriter, Misuse) {
  const auto m = symbolic_trace([](Proxy x) { return x.relu(); });
  const auto relu = [](Proxy x) { return x.relu(); };
  EXPECT_STARTS_WITH(error_of([&] { replace_pattern(*m, relu, [](Proxy x, Proxy) { return x.relu(); }); }),
                     "AssertionError: Placeholder count mismatch: 1 vs 2");
  EXPECT_STARTS_WITH(error_of([&] { replace_pattern(*m, *symbolic_trace(relu), nullptr); }),
                     "AssertionError: Must provide either");
  EXPECT_EQ(error_of([&] { SubgraphMatcher matcher(Graph{}); }),
            "ValueError: SubgraphMatcher cannot be initialized with an empty pattern");
  const GraphPtr dead = graph_of([](Proxy x) {
    x.neg();
    return x.relu();
  });
  EXPECT_STARTS_WITH(error_of([&] { SubgraphMatcher matcher(*dead); }),
                     "AssertionError: SubgraphMatcher cannot be initialized with an pattern with dead code");
}

TEST(Matcher, OutputAndPlaceholders) {
  const GraphPtr pattern = graph_of([](Proxy x, Proxy y) { return x + y; });
  const GraphPtr same = graph_of([](Proxy a, Proxy b) { return a + b; });
  const GraphPtr more = graph_of([](Proxy a, Proxy b) { return (a + b) + b; });
  MatcherOptions whole;
  whole.match_output = whole.match_placeholder = true;
  EXPECT_EQ(SubgraphMatcher(*pattern, whole).match(*same).size(), 1u);
  EXPECT_TRUE(SubgraphMatcher(*pattern, whole).match(*more).empty());
  MatcherOptions overlapping;
  overlapping.remove_overlapping_matches = false;
  EXPECT_EQ(SubgraphMatcher(*pattern, overlapping).match(*more).size(), 2u);
}

TEST(Matcher, NeverMakesACycle) {
  // The two returned values could not be computed by one node: the second needs the first from outside.
  const GraphPtr pattern = graph_of([](Proxy x, Proxy y) { return std::pair(x.neg(), y.relu()); });
  const GraphPtr graph = graph_of([](Proxy x) {
    Proxy a = x.neg();
    return a.sigmoid().relu();
  });
  EXPECT_TRUE(SubgraphMatcher(*pattern).match(*graph).empty());
  const GraphPtr free = graph_of([](Proxy x) { return x.neg().sigmoid() + x.half().relu(); });
  EXPECT_EQ(SubgraphMatcher(*pattern).match(*free).size(), 1u);
}

TEST(Matcher, NamesOfNodes) {
  const GraphPtr pattern = Graph::create();
  Node* x = pattern->placeholder("x");
  Node* neg = pattern->call_method("neg", Argument::tuple({x}));
  Node* relu = pattern->call_method("relu", Argument::tuple({neg}));
  pattern->output(Argument::tuple({relu, Argument::dict({{"n", neg}, {"r", relu}})}));
  const auto found = split_name_node_map(*pattern);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], std::pair(std::string("n"), neg));
  EXPECT_EQ(pattern->output_node()->arg(0), Argument::list({relu}));
  EXPECT_STARTS_WITH(error_of([&] { split_name_node_map(*pattern); }), "AssertionError: Expecting");
}

TEST(Matcher, DeepPatterns) {
  const GraphPtr deep = Graph::create();
  Node* n = deep->placeholder("x");
  for (int i = 0; i < 100000; ++i) n = deep->call_method("neg", Argument::tuple({n}));
  deep->output(n);
  MatcherOptions whole;
  whole.match_output = whole.match_placeholder = true;
  EXPECT_EQ(SubgraphMatcher(*deep, whole).match(*deep->copy()).size(), 1u);
}

TEST(Topology, SortsInPlaceAndKeepsWhatIsInOrder) {
  const GraphPtr g = graph_of([](Proxy x, Proxy y) { return x.neg() + y.relu(); });
  const std::string before = text(*g);
  EXPECT_TRUE(is_topologically_sorted(*g));
  Node* sum = g->output_node()->prev();
  sum->prev()->prev()->prepend(sum);  // before its inputs
  EXPECT_FALSE(is_topologically_sorted(*g));
  stable_topological_sort(*g);
  EXPECT_EQ(text(*g), before);
  std::vector<Node*> nodes(g->nodes().begin(), g->nodes().end());
  std::ranges::reverse(nodes);
  EXPECT_EQ(names(topo_sort(nodes)).back(), "output");
  nodes.push_back(nodes[0]);
  EXPECT_STARTS_WITH(error_of([&] { topo_sort(nodes); }), "AssertionError: topological sorted");
}

TEST(Topology, Cycles) {
  const GraphPtr g = graph_of([](Proxy x) { return x.neg().relu().sigmoid(); });
  Node* neg = g->find_nodes(Opcode::CallMethod, "neg")[0];
  Node *relu = neg->next(), *sigmoid = relu->next();
  EXPECT_TRUE(validate_partition(std::vector{neg, relu}));
  EXPECT_FALSE(validate_partition(std::vector{neg, sigmoid}));
  EXPECT_TRUE(validate_partitions(*g, std::vector<std::vector<Node*>>{{neg, relu}, {sigmoid}}));
  EXPECT_FALSE(validate_partitions(*g, std::vector<std::vector<Node*>>{{neg, sigmoid}, {relu}}));
  neg->set_args(Argument::tuple({sigmoid}));
  EXPECT_EQ(error_of([&] { stable_topological_sort(*g); }),
            "AssertionError: Input graph has cycles, unable to add [neg, relu, sigmoid, output]");
  EXPECT_STARTS_WITH(error_of([&] { legalize_graph(*g); }), "RuntimeError: Input graph has cycles");
}

// `count` matches among ten times as many nodes; the second value keeps two-output patterns in one piece.
GraphPtr many(size_t count) {
  GraphPtr g = Graph::create();
  GraphAppendingTracer tracer(*g);
  Proxy x(g->placeholder("x"), tracer);
  for (size_t i = 0; i < count; ++i) {
    for (int k = 0; k < 7; ++k) x = x.half();
    Proxy y = x.neg();
    x = y.relu() + y.sigmoid();
  }
  g->output(x.node());
  return g;
}

uint64_t rewrite_steps(size_t count, bool two_outputs) {
  const GraphPtr g = many(count);
  const GraphPtr pattern = two_outputs ? graph_of([](Proxy x) {
    Proxy y = x.neg();
    return std::pair(y.relu(), y.sigmoid());
  })
                                       : graph_of([](Proxy x) {
                                           Proxy y = x.neg();
                                           return y.relu() + y.sigmoid();
                                         });
  const GraphPtr replacement = two_outputs ? graph_of([](Proxy x) { return std::pair(x.relu(), x); })
                                           : graph_of([](Proxy x) { return x.half(); });
  const uint64_t before = g->work().total();
  SubgraphMatcher matcher(*pattern);
  const auto done =
      replace_matches(*g, *pattern, matcher.match(*g), [&](const InternalMatch&) { return replacement.get(); });
  EXPECT_EQ(done.size(), count);
  g->lint();
  return matcher.steps() + g->work().total() - before;
}

TEST(Rewriter, WorkIsLinear) {
  for (bool two_outputs : {false, true}) {
    const uint64_t small = rewrite_steps(2000, two_outputs), large = rewrite_steps(4000, two_outputs);
    EXPECT_GT(small, 2000u);
    EXPECT_LE(static_cast<double>(large), 2.1 * static_cast<double>(small));
  }
}

}  // namespace
}  // namespace fxjit::fx::test
