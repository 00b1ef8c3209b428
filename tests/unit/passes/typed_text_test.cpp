// Typed graphs as text: what is printed reads back equal, and errors say where.
#include "passes/typed_text.h"

#include <gtest/gtest.h>

#include "fxjit/errors.h"
#include "passes/alias.h"
#include "program.h"

namespace fxjit::inline v0::passes {
namespace {

std::string round_trip(const std::string& text) {
  ShapeEnv env;
  const TypedText read = parse_typed(text, env);
  return print_typed(*read.graph, env, read.functional);
}

std::string refusal(const std::string& body) {
  ShapeEnv env;
  try {
    parse_typed("fx 1\n" + body, env);
  } catch (const ValueError& e) {
    return e.what();
  }
  return "";
}

TEST(TypedText, EveryKindOfLine) {
  const std::string text =
      "fx 1\n"
      "value functional = True\n"
      "symbol s0 : size(0, 0) = 6\n"
      "symbol s1 : size(0, 1) = 5\n"
      "symbol t2 : stride(1, 0) = -7\n"
      "symbol n3 : int(2) = 1\n"
      "guard s0 != s1\n"
      "guard (s0 + n3) <= 7\n"
      "typed graph:\n"
      "  %a : f32[s0, s1] = placeholder\n"
      "  %b : bf16[s0*s1*2, (s0 + s1 + -1)] (t2, 0) cuda grad = placeholder\n"
      "  %n = placeholder\n"
      "  %c : f64[] number = get_attr half\n"
      "  %d : f32[max(s0, s1), (s0 // 4), (s1 % 4)] meta = mine::draw.out(%a, %n, torch.float32) !{\"effect\": "
      "\"random\"}\n"
      "  %e = mine::print(%d) !{\"effect\": \"write\"}\n"
      "  %f : f32[1, 0] (3, 1) other = _operator:getitem(%d, 0)\n"
      "  return (%a, %f)\n";
  // Sums are chains: each is in parentheses of its own.
  std::string printed = text;
  printed.replace(printed.find("(s0 + s1 + -1)"), 14, "((s0 + s1) + -1)");
  EXPECT_EQ(round_trip(text), printed);
  EXPECT_EQ(round_trip(printed), printed);
}

TEST(TypedText, EffectsAreKept) {
  ShapeEnv env;
  const TypedText read = parse_typed(
      "fx 1\ntyped graph:\n  %x : f32[4] = placeholder\n  %a : f32[4] = aten::rand_like(%x) !{\"effect\": \"random\"}\n"
      "  %b : f32[4] = aten::add_.Tensor(%x, %a, 1)\n  %c = my::log(%x) !{\"effect\": \"write\"}\n"
      "  %d : f32[4] = aten::exp(%x)\n  return %x\n",
      env);
  std::vector<Effect> effects;
  for (const fx::Node* n : read.graph->nodes()) effects.push_back(effect_of(*n));
  EXPECT_EQ(effects, (std::vector<Effect>{Effect::None, Effect::Order, Effect::Write, Effect::Write, Effect::None,
                                          Effect::None}));
}

TEST(TypedText, RefusalsSayWhere) {
  const std::string symbol = "symbol s0 : size(0, 0) = 6\n", graph = "typed graph:\n  %x : ";
  const std::pair<std::string, std::string> cases[] = {
      {graph + "f32[s0] = placeholder\n", "line 3, column 12: there is no symbol s0 before this line"},
      {graph + "f33[4] = placeholder\n", "line 3, column 8: expected the type of a tensor"},
      {graph + "f32[-1] = placeholder\n", "line 3, column 12: the size -1 is negative"},
      {graph + "f32[4, 5] (1) = placeholder\n", "line 3, column 18: as many strides as sizes"},
      {graph + "f32[4 // 0] = placeholder\n", "line 3, column 14: a size is divided by 0"},
      {graph + "f32[4] cuda meta = placeholder\n", "a tensor is on one device"},
      {graph + "f32[4 = placeholder\n", "line 3, column 14: expected ',' or ']', found '='"},
      {graph + "f32[" + std::string(200, '(') + "\n", "a size is nested deeper than 100"},
      {"symbol s1 : size(0, 0) = 6\n", "line 2, column 8: the next symbol is s0"},
      {"symbol t0 : size(0, 0) = 6\n", "line 2, column 8: the next symbol is s0"},
      {"symbol s0 : size(0, 0) = 1\n", "line 2, column 26: a size that is a symbol is 2 at least"},
      {"symbol s0 : size(-1, 0) = 6\n", "expected the number of an input"},
      {"symbol s0 : length(0) = 6\n", "line 2, column 13: expected size(input, dim), stride(input, dim) or int(input)"},
      {symbol + "symbol s1 : size(0, 1) = 6\n", "line 3, column 26: sizes of one value are one symbol, here s0"},
      {symbol + "guard s0 < 6\n", "line 3, column 7: the symbols' values do not fulfil this"},
      {symbol + "guard s0 > 5\n", "line 3, column 10: expected ==, !=, <= or <"},
      {graph + "f32[4] = placeholder\n  %y : f32[4] = kernel:fused_exp(%x)\n",
       "line 4, column 17: kernel:fused_exp was made by the pass fuse: a graph with kernels is not read"},
      {graph + "f32[4] = placeholder !{\"effect\": \"write\"}\n", "line 3, column 30: behind an operator"},
      {"value other = 1\n" + graph + "f32[4] = placeholder\n", "a typed graph has no value other"},
      {"", "expected one graph, found 0"},
  };
  for (const auto& [body, message] : cases) EXPECT_NE(refusal(body).find(message), std::string::npos) << refusal(body);
}

// One value however large: it is neither undefined nor endless.
TEST(TypedText, ArithmeticAtTheEdge) {
  const std::string least = "-9223372036854775808";
  EXPECT_EQ(refusal("symbol n0 : int(0) = " + least + "\nguard n0 // -1 == " + least + "\nguard n0 % -1 == 0\n" +
                    "typed graph:\n  return None\n"),
            "");
  std::string sum = "n0";
  for (int i = 0; i < 1001; ++i) sum += " * n0";
  EXPECT_NE(refusal("symbol n0 : int(0) = 1\nguard " + sum + " == 1\n").find("more than 1000 operations"),
            std::string::npos);
}

}  // namespace
}  // namespace fxjit::inline v0::passes
