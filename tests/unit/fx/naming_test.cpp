// Names are compared by users and tests: they must be those of torch.fx.
#include <map>
#include <random>
#include <set>

#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

TEST(Naming, EqualsTorchFxOnASequenceOfCandidates) {
  const std::pair<const char*, const char*> cases[] = {
#include "naming_cases.inc"
  };
  Graph g;
  for (const auto& [candidate, name] : cases) EXPECT_EQ(g.create_name(candidate), name) << candidate;
}

// The rules as they are written down, without anything that makes them fast.
class PlainNamespace {
 public:
  std::string create(const std::string& candidate) {
    std::string base = candidate, name = candidate;
    int64_t number = -1;
    const size_t end = candidate.find_last_not_of("0123456789");
    if (end + 1 < candidate.size() && end != std::string::npos && end > 0 && candidate[end] == '_') {
      base = candidate.substr(0, end);
      number = std::stoll(candidate.substr(end + 1));
    }
    const auto numbered = [&] { name = base + "_" + std::to_string(++number); };
    if (number < 0 || used_.contains(name)) {
      number = counts_[candidate];
      if (candidate == "float") numbered();
    }
    while (used_.contains(name)) numbered();
    used_.insert(name);
    counts_[base] = number;
    return name;
  }

 private:
  std::set<std::string> used_;
  std::map<std::string, int64_t> counts_;
};

TEST(Naming, EqualsThePlainRulesOnRandomCandidates) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    Graph g;
    PlainNamespace plain;
    const unsigned spread = 2 + random() % 12;
    for (int i = 0; i < 80; ++i) {
      static constexpr const char* kBases[] = {"add", "float", "a_1", "mul_x"};
      std::string candidate = kBases[random() % (1 + random() % 4)];
      if (random() % 2) candidate += (random() % 8 ? "_" : "_0") + std::to_string(random() % spread);
      EXPECT_EQ(g.create_name(candidate), plain.create(candidate)) << candidate << ", " << i << " of round " << round;
    }
  }
}

TEST(Naming, TargetsLoseMagicUnderscoresAndCamelCase) {
  EXPECT_EQ(Graph::target_to_name("__and__"), "and");
  EXPECT_EQ(Graph::target_to_name("maxPool"), "max_pool");
  EXPECT_EQ(Graph::target_to_name("ReLU"), "re_lu");
  EXPECT_EQ(Graph::target_to_name("ALL_CAPS"), "all_caps");
  EXPECT_EQ(Graph::target_to_name(op("add")), "add");
  EXPECT_EQ(Graph::target_to_name(make_function("torch.ops.aten.add.Tensor", nullptr)), "tensor");
}

TEST(Naming, BuiltinsAndKeywordsStartAtOne) {
  Graph g;
  Node* x = g.placeholder("input");
  EXPECT_EQ(x->name(), "input_1");
  EXPECT_EQ(x->target_str(), "input");
  const Argument args = Argument::tuple({x});
  EXPECT_EQ(g.call_method("float", args)->name(), "float_1");
  EXPECT_EQ(g.call_method("float", args)->name(), "float_2");
  EXPECT_EQ(g.call_method("__and__", args)->name(), "and_1");
  EXPECT_EQ(g.call_function(builtin_function("builtins.getattr"), Argument::tuple({x, "shape"}))->name(), "getattr_1");
  EXPECT_EQ(g.call_function(op("add"), Argument::tuple({x, x}))->name(), "add");
  EXPECT_EQ(g.placeholder("*args")->name(), "_args");
  EXPECT_EQ(g.get_attr("conv.0.weight")->name(), "conv_0_weight");
}

TEST(Naming, ARequestedSuffixIsKeptIfFree) {
  Graph g;
  EXPECT_EQ(g.create_name("add_5"), "add_5");
  EXPECT_EQ(g.create_name("add"), "add");
  EXPECT_EQ(g.create_name("add"), "add_6");
  EXPECT_EQ(g.create_name("add_5"), "add_1");
}

TEST(Naming, RenameStaysUnique) {
  Graph g;
  Node* a = g.placeholder("a");
  Node* b = g.placeholder("b");
  b->rename("a");
  EXPECT_EQ(b->name(), "a_1");
  a->rename("a");
  EXPECT_EQ(a->name(), "a");
  g.lint();
}

// Names that were numbered in a row, and assigned again.
TEST(Naming, AnAssignedNameIsTakenAndLintedByItsText) {
  Graph g;
  for (int i = 0; i < 4; ++i) g.placeholder("a");
  const std::vector<Node*> nodes(g.nodes().begin(), g.nodes().end());
  nodes[3]->set_name("b_7");
  g.lint();
  EXPECT_EQ(g.create_name("b_7"), "b_1");
  EXPECT_EQ(g.create_name("a_3"), "a_4");  // names are not given back
  nodes[0]->set_name("a_2");
  EXPECT_EQ(error_of([&] { g.lint(); }), "RuntimeError: Node redefined name a_2!");
  nodes[0]->set_name("a");
  g.lint();
}

}  // namespace
}  // namespace fxjit::fx::test
