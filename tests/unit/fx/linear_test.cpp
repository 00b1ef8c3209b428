// Work grows with the number of nodes and edges: shown by counting steps, not by time.
#include <random>

#include "fx_test_util.h"
#include "fxjit/fx/text.h"
#include "tests/unit/allocations.h"

namespace fxjit::fx::test {
namespace {

using fxjit::test::Allocations;
using fxjit::test::allocations_of;

GraphPtr chain(size_t n) {
  GraphPtr g = Graph::create();
  GraphAppendingTracer tracer(*g);
  Proxy x(g->placeholder("x"), tracer), y = x;
  for (size_t i = 0; i < n; ++i) y = y + x;
  g->output(y);
  return g;
}

uint64_t steps(Graph& g, auto&& action) {
  const uint64_t before = g.work().total();
  action();
  return g.work().total() - before;
}

// Twice the nodes, at most 2.1 times the work (and some work at all).
void expect_linear(uint64_t small, uint64_t large) {
  EXPECT_GT(small, 0u);
  EXPECT_LE(static_cast<double>(large), 2.1 * static_cast<double>(small));
}

constexpr size_t kNodes = 100000;

TEST(Linear, TracingNamesAndPrinting) {
  const GraphPtr small = chain(kNodes), large = chain(2 * kNodes);
  expect_linear(small->work().total(), large->work().total());
  EXPECT_LE(large->work().name_probes, 2 * large->size() + 10);
  EXPECT_EQ(large->output_node()->prev()->name(), "add_" + std::to_string(2 * kNodes - 1));
  expect_linear(small->to_string().size(), large->to_string().size());
}

TEST(Linear, CopyLintDeadCodeAndFind) {
  const GraphPtr small = chain(kNodes), large = chain(2 * kNodes);
  const GraphPtr small_copy = small->copy(), large_copy = large->copy();
  expect_linear(small_copy->work().total(), large_copy->work().total());
  Graph target_small, target_large;
  NodeMap map_small, map_large;
  target_small.graph_copy(*small, map_small);
  target_large.graph_copy(*large, map_large);
  expect_linear(target_small.work().total(), target_large.work().total());
  expect_linear(steps(*small, [&] { small->lint(); }), steps(*large, [&] { large->lint(); }));
  const auto find = [](Graph& g) { return steps(g, [&] { (void)g.find_nodes(Opcode::CallFunction, op("add")); }); };
  expect_linear(find(*small), find(*large));
  small->output_node()->set_args(Argument::tuple({nullptr}));
  large->output_node()->set_args(Argument::tuple({nullptr}));
  expect_linear(steps(*small, [&] { small->eliminate_dead_code(); }),
                steps(*large, [&] { large->eliminate_dead_code(); }));
  EXPECT_EQ(large->size(), 2u);
}

// What is allocated for a graph of n nodes, by each of the steps that are to be linear.
std::vector<std::pair<const char*, Allocations>> allocated_by_steps(size_t n) {
  std::vector<std::pair<const char*, Allocations>> found;
  const auto step = [&](const char* name, auto&& action) { found.emplace_back(name, allocations_of(action)); };
  GraphPtr g, copy, parsed;
  step("trace", [&] { g = chain(n); });
  step("copy", [&] { copy = g->copy(); });
  step("graph_copy", [&] {
    Graph target;
    NodeMap map;
    target.graph_copy(*g, map);
  });
  step("lint", [&] { g->lint(); });
  step("print", [&] { EXPECT_GT(g->to_string().size(), n); });
  std::string text;
  step("print_text", [&] { text = print_text(*g); });
  step("parse", [&] { parsed = parse_graph(text); });
  EXPECT_EQ(parsed->size(), g->size());
  copy->output_node()->set_args(Argument::tuple({nullptr}));
  step("dead code", [&] { copy->eliminate_dead_code(); });
  EXPECT_EQ(copy->size(), 2u);
  return found;
}

// Twice the nodes, about twice the allocations and bytes; whatever is copied over and over would show here.
TEST(Linear, AllocationsOfEachStep) {
  const auto small = allocated_by_steps(kNodes / 4), large = allocated_by_steps(kNodes / 2);
  for (size_t i = 0; i < small.size(); ++i) {
    const auto& [name, a] = small[i];
    const Allocations& b = large[i].second;
    EXPECT_LE(static_cast<double>(b.count), 2.1 * static_cast<double>(a.count) + 20) << name;
    EXPECT_LE(static_cast<double>(b.bytes), 2.5 * static_cast<double>(a.bytes) + 1000) << name;
  }
}

TEST(Linear, AllocationsPerNode) {
  const auto found = allocated_by_steps(kNodes);
  const auto most = [&](std::string_view wanted, double per_node) {
    for (const auto& [name, a] : found) {
      if (name != wanted) continue;
      EXPECT_LE(static_cast<double>(a.count), per_node * kNodes + 200) << name;
    }
  };
  most("trace", 1);  // the arguments
  most("copy", 1);
  most("lint", 0);
  most("print", 6);
  most("print_text", 1);  // the table of names
}

TEST(Linear, TheCountOfAllocationsShowsQuadraticWork) {
  const auto quadratic = [](size_t n) {
    return allocations_of([n] {
      std::string s;
      for (size_t i = 0; i < n; ++i) s = std::string(s + "some text to be copied again and again");
    });
  };
  EXPECT_GT(quadratic(2000).bytes, 3 * quadratic(1000).bytes);
}

TEST(Linear, ReplacingTheUsesOfEveryNode) {
  const auto replace_all = [](Graph& g) {
    return steps(g, [&] {
      for (Node* n : g.nodes()) {
        if (n->op() != Opcode::CallFunction || n->num_users() == 0) continue;
        const auto scope = g.inserting_after(n);
        Node* copy = g.call_method("clone", Argument::tuple({n}));
        n->replace_all_uses_with(copy, [&](Node* user) { return user != copy; });
      }
    });
  };
  const GraphPtr small = chain(kNodes / 4), large = chain(kNodes / 2);
  const uint64_t a = replace_all(*small), b = replace_all(*large);
  expect_linear(a, b);
  large->lint();
}

TEST(Linear, ManyRequestsForTheSameSuffixedName) {
  Graph g;
  for (size_t i = 0; i < kNodes; ++i) g.create_name("add_1");
  EXPECT_LE(g.work().name_probes, 3 * kNodes);
}

// Inserting over and over at one place is the worst case for labels: n log n at most.
TEST(Order, LabelsStayInOrderWhereverNodesAreInserted) {
  const std::pair<const char*, std::function<InsertPoint(Graph&, Node*, Node*)>> places[] = {
      {"before one node", [](Graph&, Node*, Node* last) { return InsertPoint{last, false}; }},
      {"behind one node", [](Graph&, Node* first, Node*) { return InsertPoint{first, true}; }},
      {"at the beginning", [](Graph& g, Node*, Node*) { return InsertPoint{g.root(), true}; }},
  };
  for (const auto& [name, place] : places) {
    Graph g;
    Node *first = g.placeholder("a"), *last = g.placeholder("b");
    constexpr size_t n = 20000;
    for (size_t i = 0; i < n; ++i) {
      g.set_insert_point(place(g, first, last));
      g.placeholder("c");
    }
    for (Node* m = g.root()->next(); m->next() != g.root(); m = m->next()) ASSERT_TRUE(*m < *m->next()) << name;
    EXPECT_LE(g.work().order_labels, 60 * n) << name;
  }
}

TEST(Order, RandomInsertsAndMovesKeepTheOrder) {
  std::mt19937 random(3);
  Graph g;
  std::vector<Node*> nodes{g.placeholder("x")};
  for (int i = 0; i < 20000; ++i) {
    Node* at = nodes[random() % nodes.size()];
    if (random() % 3 == 0) {
      Node* moved = nodes[random() % nodes.size()];
      if (moved != at) at->prepend(moved);
    } else {
      const auto scope = random() % 2 ? g.inserting_before(at) : g.inserting_after(at);
      nodes.push_back(g.placeholder("x"));
    }
  }
  size_t count = 1;
  for (Node* m = g.root()->next(); m->next() != g.root(); m = m->next(), ++count) ASSERT_TRUE(*m < *m->next());
  EXPECT_EQ(count, g.size());
}

TEST(Memory, ANodeStaysWithinItsBudget) {
  const GraphPtr g = chain(kNodes);
  // The node, its two edges, its name, and the index by id; chunks of the arena may be half empty.
  EXPECT_LE(g->bytes() / g->size(), 2 * (sizeof(Node) + 2 * sizeof(Use) + 16));
}

TEST(Deep, AChainIsCopiedAndFreedWithoutRecursion) {
  const GraphPtr g = chain(kNodes);
  const GraphPtr copy = g->copy();
  EXPECT_EQ(copy->size(), g->size());
  copy->lint();
}

}  // namespace
}  // namespace fxjit::fx::test
