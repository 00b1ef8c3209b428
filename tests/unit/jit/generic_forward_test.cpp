#include <gtest/gtest.h>

#include "fake_host.h"
#include "fxjit/errors.h"

namespace fxjit {
namespace {

using fx::Argument;
using fx::Graph;
using fx::GraphPtr;
using fx::Node;
using test::Box;
using test::GenericHost;

Node* call(Graph& g, const char* name, std::initializer_list<Argument> args) {
  return g.call_function(fx::builtin_function(name), Argument::tuple(args));
}
Node* add(Graph& g, Argument a, Argument b) { return call(g, "_operator.add", {std::move(a), std::move(b)}); }
Node* mul(Graph& g, Argument a, Argument b) { return call(g, "_operator.mul", {std::move(a), std::move(b)}); }

// A user's function: whatever name, returns its first argument plus one.
fx::CallableRef user_function(const std::string& name) {
  return fx::make_function(
      name, [](std::span<const fx::Value> args, const fx::Value&) -> fx::Value { return args[0].as_int() + 1; });
}

std::string generic_text(const Graph& g) { return jit::generic_ir(g, codegen::plan_generic(g)); }

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(GenericForward, ComputesWhatTheGraphSays) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  Node* y = g->placeholder("y");
  Node* sum = add(*g, x, y);
  g->output(mul(*g, sum, x));
  GenericHost host(*g);
  EXPECT_EQ(host.run({3, 4}).as_int(), 21);
  EXPECT_EQ(host.run({5, 1}).as_int(), 30);
  EXPECT_EQ(host.left_behind, 0);
  EXPECT_EQ(Box::live, 0);
}

TEST(GenericForward, StructuredOutputsAndConstants) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  g->output(Argument::tuple({add(*g, x, 1), x, "text", Argument::list({x, 7})}));
  GenericHost host(*g);
  EXPECT_EQ(host.run({2}).to_string(), "(3, 2, text, [2, 7])");
  EXPECT_EQ(Box::live, 0);
}

TEST(GenericForward, OutputThatIsAnInput) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  g->output(x);
  GenericHost host(*g);
  EXPECT_EQ(host.run({9}).as_int(), 9);
  EXPECT_EQ(Box::live, 0);
}

TEST(GenericForward, WithoutAnOutputTheResultIsNone) {
  auto g = Graph::create();
  add(*g, g->placeholder("x"), 1);
  GenericHost host(*g);
  EXPECT_TRUE(host.run({9}).is_none());
  EXPECT_EQ(host.ran.size(), 1u);
  EXPECT_EQ(Box::live, 0);
}

TEST(GenericForward, AttributesAreReadAtEachCall) {
  auto g = Graph::create();
  Node* w = g->get_attr("block.weight");
  g->output(mul(*g, w, g->placeholder("x")));
  GenericHost host(*g);
  host.attributes["block.weight"] = 3;
  EXPECT_EQ(host.run({4}).as_int(), 12);
  host.attributes["block.weight"] = 5;
  EXPECT_EQ(host.run({4}).as_int(), 20);
}

TEST(GenericForward, ValuesAreReleasedAfterTheirLastUse) {
  auto g = Graph::create();
  Node* v = g->placeholder("x");
  for (int i = 0; i < 100; ++i) v = add(*g, v, 1);
  g->output(v);
  GenericHost host(*g);
  EXPECT_EQ(host.run({0}).as_int(), 100);
  EXPECT_EQ(Box::peak, 3);  // the input, an operand, its result
  EXPECT_EQ(host.plan().slots, 3);
}

TEST(GenericForward, ValueThatIsUsedTwiceLivesUntilTheSecondUse) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  Node* early = add(*g, x, 1);
  Node* v = early;
  for (int i = 0; i < 10; ++i) v = add(*g, v, 1);
  g->output(mul(*g, v, early));
  GenericHost host(*g);
  EXPECT_EQ(host.run({0}).as_int(), 11);
  EXPECT_EQ(Box::peak, 4);
}

TEST(GenericForward, UnusedValueIsReleasedAtOnce) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  for (int i = 0; i < 20; ++i) add(*g, x, i);
  g->output(x);
  GenericHost host(*g);
  host.run({0});
  EXPECT_EQ(host.ran.size(), 21u);
  EXPECT_EQ(Box::peak, 2);
}

TEST(GenericForward, FirstErrorEndsTheCall) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  Node* a = add(*g, x, 1);
  Node* b = mul(*g, a, 2);
  g->output(add(*g, b, a));
  GenericHost host(*g);
  host.failing_node = std::string(b->name());
  fxjit_status status = FXJIT_OK;
  host.run({1}, &status);
  EXPECT_EQ(status, FXJIT_ERROR);
  EXPECT_EQ(host.ran, (std::vector<std::string>{std::string(a->name()), std::string(b->name())}));
  EXPECT_EQ(host.left_behind, 1) << "a is the host's to drop";
  EXPECT_EQ(Box::live, 0);
}

TEST(GenericForward, LongGraphsComeInParts) {
  for (const int n : {254, 255, 256, 257, 600, 3000}) {  // around the size of a part, placeholder and output included
    auto g = Graph::create();
    Node* v = g->placeholder("x");
    for (int i = 0; i < n; ++i) v = add(*g, v, 1);
    g->output(v);
    GenericHost host(*g);
    EXPECT_EQ(host.run({5}).as_int(), n + 5);
    EXPECT_EQ(host.ran.size(), static_cast<size_t>(n + 1));
    const size_t parts = n + 2 <= 256 ? 0 : (n + 2 + 255) / 256;
    EXPECT_EQ(count(generic_text(*g), "define internal"), parts) << n;
  }
}

TEST(GenericForward, ErrorInALaterPartIsReturned) {
  auto g = Graph::create();
  Node* v = g->placeholder("x");
  for (int i = 0; i < 700; ++i) v = add(*g, v, 1);
  Node* last = mul(*g, v, 2);
  g->output(last);
  GenericHost host(*g);
  host.failing_node = std::string(last->name());
  fxjit_status status = FXJIT_OK;
  host.run({1}, &status);
  EXPECT_EQ(status, FXJIT_ERROR);
  EXPECT_EQ(Box::live, 0);
}

TEST(GenericForward, TextNamesCalleesNodesAndLines) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  auto lowp = user_function("__main__.sigmoid_lowp");
  Node* a = g->call_function(lowp, Argument::tuple({x}));
  Node* b = g->call_function(lowp, Argument::tuple({a}));
  g->output(add(*g, a, b));
  const std::string text = generic_text(*g);
  EXPECT_EQ(count(text, "declare i32 @__main__.sigmoid_lowp(ptr, i32)"), 1u) << text;
  EXPECT_EQ(count(text, "%sigmoid_lowp = call i32 @__main__.sigmoid_lowp(ptr %frame, i32 1)"), 1u) << text;
  EXPECT_EQ(count(text, "%sigmoid_lowp_1 = call i32 @__main__.sigmoid_lowp(ptr %frame, i32 2)"), 1u) << text;
  EXPECT_EQ(count(text, "; " + a->format_node()), 1u) << text;
  EXPECT_EQ(count(text, "call void @release(ptr %frame,"), 3u) << text;
}

// Names of the user's functions may be anything, also those of our own functions and of libc's.
TEST(GenericForward, AnyCalleeNameWorks) {
  auto g = Graph::create();
  Node* v = g->placeholder("x");
  const std::string names[] = {"forward", "release",       "memcpy",    "fxjit_scratch", "a \"quoted\"\nname",
                               "",        "\x01_asm_name", "mod.Ünï.f", "forward.part0", "output",
                               "<lambda>"};
  for (const std::string& name : names) {
    v = g->create_node(fx::Opcode::CallFunction, Argument(user_function(name)), Argument::tuple({v}), {}, "node");
  }
  g->output(v);
  GenericHost host(*g);
  EXPECT_EQ(host.run({0}).as_int(), static_cast<int64_t>(std::size(names)));
}

TEST(GenericForward, UseBeforeDefinitionIsAnInternalError) {
  auto g = Graph::create();
  Node* x = g->placeholder("x");
  Node* a = add(*g, x, 1);
  Node* b = add(*g, a, 1);
  g->output(b);
  a->prepend(b);
  EXPECT_THROW(codegen::plan_generic(*g), InternalError);
}

}  // namespace
}  // namespace fxjit
