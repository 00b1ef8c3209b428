// split_module, partitioner and fusion.
#include <algorithm>

#include "fx_test_util.h"
#include "fxjit/fx/partitioner.h"
#include "fxjit/fx/split_module.h"

namespace fxjit::fx::test {
namespace {

GraphModuleRef program() {
  return symbolic_trace([](Proxy x, Proxy y) {
    Proxy a = x * 3, b = a + y, c = b * a;
    return c - y;
  });
}

Names children(const GraphModule& m) {
  Names found;
  for (const Attribute& a : m.attributes()) found.push_back(a.name);
  return found;
}

const auto by_name = [](Node* n) { return n->name() == "mul" || n->name() == "add" ? 0 : 1; };

TEST(SplitModule, TwoPartitions) {
  const auto m = program();
  const auto split = split_module(*m, by_name);
  EXPECT_EQ(names(split->graph()), (Names{"x", "y", "submod_0", "getitem", "getitem_1", "submod_1", "output"}));
  EXPECT_EQ(children(*split), (Names{"submod_0", "submod_1"}));
  EXPECT_EQ(run(*split, {2, 5}), (2 * 3 + 5) * (2 * 3) - 5);
  EXPECT_EQ(names(m->graph()).size(), 7u);  // as it was
}

TEST(SplitModule, OptionsAndOrder) {
  const auto m = program();
  int64_t last = -1;
  const auto each = [&](const Node*) { return ++last / 2; };
  SplitOptions options;
  options.partition_affix = "pp";
  options.keep_original_input_name = false;
  options.keep_original_node_name = true;
  const auto split = split_module(*m, each, options);
  EXPECT_EQ(children(*split), (Names{"submod_pp_0", "submod_pp_1"}));
  const auto part = find_module(*split, "submod_pp_1");
  const auto* sub = dynamic_cast<const GraphModule*>(part.get());
  ASSERT_TRUE(sub);
  EXPECT_EQ(names(sub->graph()), (Names{"arg_0", "arg_1", "arg_2", "mul_1", "sub", "output"}));
}

TEST(SplitModule, AttributesAndNames) {
  const auto root = make_ref<BasicModule>();
  const auto inner = root->register_module("outer", make_ref<BasicModule>());
  inner->register_module("relu", make_ref<BasicModule>());
  root->register_parameter("scale", parameter(3));
  const GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  Node* scaled = g->call_function(op("mul"), Argument::tuple({x, g->get_attr("scale")}));
  g->output(g->call_module("outer.relu", Argument::tuple({scaled})));
  const auto m = GraphModule::create(root, g);
  TargetMap names_of;
  const auto split = split_module(*m, [](Node* n) { return n->op() == Opcode::CallModule ? 1 : 0; }, {}, &names_of);
  EXPECT_EQ(names_of, (TargetMap{{"submod_1.outer_relu", "outer.relu"}}));
  EXPECT_EQ(find_attribute(*split, "submod_1.outer_relu"), find_attribute(*root, "outer.relu"));
  EXPECT_EQ(find_attribute(*split, "scale"), find_attribute(*root, "scale"));
}

TEST(SplitModule, CyclesAndMissingTargets) {
  const auto m = program();
  int turn = 0;
  EXPECT_STARTS_WITH(error_of([&] { split_module(*m, [&](Node*) { return ++turn % 2; }); }),
                     "RuntimeError: cycle exists between partitions!");
  const GraphPtr g = Graph::create();
  g->output(g->call_module("nowhere", Argument::tuple({g->placeholder("x")})));
  const BasicModule empty;
  EXPECT_STARTS_WITH(error_of([&] { split_graph(*g, empty, [](Node*) { return 0; }); }),
                     "AttributeError: Node target nowhere not found!");
}

const auto is_cheap = [](Node* n) { return n->op() == Opcode::CallMethod && n->target_str() != "sigmoid"; };

TEST(SplitByTags, SubmodulesInTheOrderOfTheTags) {
  const auto m = program();
  const std::vector<std::string> tags = {"front", "unused", "back"};
  const auto tag = [](Node* n) { return by_name(n) == 0 ? std::string("front") : std::string("back"); };
  const auto split = split_by_tags(*m, tags, tag);
  EXPECT_EQ(names(split->graph()), (Names{"x", "y", "front", "getitem", "getitem_1", "unused", "back", "output"}));
  EXPECT_EQ(children(*split), (Names{"front", "unused", "back"}));
  EXPECT_EQ(run(*split, {2, 5}), (2 * 3 + 5) * (2 * 3) - 5);
  const auto tuples = split_by_tags(*m, tags, tag, true);
  EXPECT_EQ(names(tuples->graph()).back(), "output");
  EXPECT_EQ(names(tuples->graph()).size(), names(split->graph()).size() + 1);  // an item of what `back` returns
  EXPECT_EQ(run(*tuples, {2, 5}), (2 * 3 + 5) * (2 * 3) - 5);
}

TEST(SplitByTags, AttributesKeepTheirPaths) {
  const auto root = make_ref<BasicModule>();
  const auto inner = root->register_module("outer", make_ref<BasicModule>());
  inner->register_module("relu", make_ref<BasicModule>());
  inner->register_parameter("scale", parameter(3));
  const GraphPtr g = Graph::create();
  Node* scale = g->get_attr("outer.scale");
  Node* scaled = g->call_function(op("mul"), Argument::tuple({g->placeholder("x"), scale}));
  g->output(Argument::tuple({g->call_module("outer.relu", Argument::tuple({scaled})), scale}));
  const auto m = GraphModule::create(root, g);
  TargetMap paths;
  const std::vector<std::string> tags = {"a", "b"};
  const auto tag = [](Node* n) { return n->op() == Opcode::CallModule ? std::string("b") : std::string("a"); };
  const auto split = split_by_tags(*m, tags, tag, false, &paths);
  EXPECT_EQ(paths, (TargetMap{{"a.outer.scale", "outer.scale"}, {"b.outer.relu", "outer.relu"}}));
  EXPECT_EQ(names(split->graph()), (Names{"x", "outer_scale", "a", "b", "output"}));
  for (const char* path : {"a.outer.scale", "outer.scale"}) {
    EXPECT_EQ(find_attribute(*split, path).get(), find_attribute(*m, "outer.scale").get()) << path;
  }
  EXPECT_EQ(find_module(*split, "b.outer.relu").get(), find_module(*m, "outer.relu").get());
}

TEST(SplitByTags, Mistakes) {
  const auto m = program();
  const std::vector<std::string> tags = {"a", "b"};
  EXPECT_THROW(split_by_tags(*m, tags, [](Node*) { return std::string("c"); }), KeyError);
  const auto backwards = [](Node* n) { return n->name() == "mul" ? std::string("b") : std::string("a"); };
  EXPECT_THROW(split_by_tags(*m, tags, backwards), AssertionError);
}

TEST(Partitioner, ProposesAndFuses) {
  const auto m = symbolic_trace([](Proxy x) {
    Proxy a = (x + 1) * 2, b = a - 5;
    Proxy c = (b + 2) * 3;
    return c - a;
  });
  PartitionerOptions options;
  options.allows_single_node_partition = true;
  const auto supported = [](Node* n) { return n->name().starts_with("add") || n->name().starts_with("mul"); };
  const CapabilityBasedPartitioner partitioner(m, supported, options);
  const std::vector<Partition> found = partitioner.propose_partitions();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(names(found[0].nodes), (Names{"add_1", "mul_1"}));
  EXPECT_EQ(names(found[1].nodes), (Names{"add", "mul"}));
  EXPECT_EQ(partitioner.partition_and_fuse("part_"), m);
  EXPECT_EQ(names(m->graph()), (Names{"x", "part_1", "sub", "part_0", "sub_1", "output"}));
  EXPECT_EQ(run(*m, {7}), (16 - 5 + 2) * 3 - 16);
}

TEST(Partitioner, SeveralOutputsAndCycles) {
  const auto make = [] {
    return symbolic_trace([](Proxy x) {
      Proxy a = x.neg(), b = a.relu();
      return a.sigmoid() + b;
    });
  };
  const auto m = make();
  const auto nodes = [](const GraphModuleRef& from, const char* a, const char* b) {
    return std::vector{from->graph().find_nodes(Opcode::CallMethod, a)[0],
                       from->graph().find_nodes(Opcode::CallMethod, b)[0]};
  };
  fuse_by_partitions(*m, {nodes(m, "relu", "neg")});
  EXPECT_EQ(names(m->graph()), (Names{"x", "fused_0", "getitem", "getitem_1", "sigmoid", "add", "output"}));
  const auto cyclic = symbolic_trace([](Proxy x) { return x.neg().sigmoid().relu(); });
  EXPECT_EQ(error_of([&] { fuse_by_partitions(*cyclic, {nodes(cyclic, "neg", "relu")}); }),
            "AssertionError: Invalid partition, found dependency cycles");
  EXPECT_EQ(names(cyclic->graph()), (Names{"x", "neg", "sigmoid", "relu", "output"}));
}

TEST(Partitioner, Bookends) {
  const auto view = make_function("view", {}), compute = make_function("compute", {});
  const GraphPtr g = Graph::create();
  std::vector<Node*> nodes{g->placeholder("x")};
  for (const auto& f : {view, compute, view, compute, view}) {
    nodes.push_back(g->call_function(f, Argument::tuple({nodes.back()})));
  }
  g->output(nodes.back());
  nodes.erase(nodes.begin());
  EXPECT_EQ(names(bookend_non_compute_nodes(nodes, {"view"})), (Names{"view", "view_2"}));
}

// `segments` groups of eight supported nodes with one between them that is not.
GraphModuleRef segments(size_t count) {
  const GraphPtr g = Graph::create();
  GraphAppendingTracer tracer(*g);
  Proxy x(g->placeholder("x"), tracer);
  for (size_t i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k) x = x.neg().relu();
    x = x.sigmoid();
  }
  g->output(x.node());
  return GraphModule::create(make_ref<BasicModule>(), g);
}

TEST(Partitioner, WorkIsLinear) {
  const auto steps = [](size_t count) {
    const auto m = segments(count);
    PartitionerOptions options;
    options.allows_single_node_partition = true;
    const auto found = propose_partitions(m->graph(), is_cheap, options);
    EXPECT_EQ(found.size(), count);
    std::vector<std::vector<Node*>> groups;
    for (const Partition& p : found) groups.push_back(p.nodes);
    const uint64_t before = m->graph().work().total();
    fuse_by_partitions(*m, groups);
    EXPECT_EQ(m->graph().size(), 2 * count + 2);
    return m->graph().work().total() - before;
  };
  const uint64_t small = steps(500), large = steps(1000);
  EXPECT_GT(small, 500u * 9);
  EXPECT_LE(static_cast<double>(large), 2.1 * static_cast<double>(small));
}

}  // namespace
}  // namespace fxjit::fx::test
