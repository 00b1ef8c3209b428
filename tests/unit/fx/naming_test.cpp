// Names are compared by users and tests: they must be those of torch.fx.
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

}  // namespace
}  // namespace fxjit::fx::test
