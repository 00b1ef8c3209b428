// The text format: what is printed reads back equal, and errors say where.
#include "fxjit/fx/text.h"

#include <bit>
#include <limits>

#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

std::string with_header(std::string_view body) { return "fx 1\n" + std::string(body); }
std::string parse_error(std::string_view body) {
  return error_of([&] { parse_text(with_header(body)); });
}
std::string value_error(std::string_view text) {
  return error_of([&] { parse_value(text); });
}

TEST(Text, AGraphOfAllOpcodes) {
  Graph g;
  Node* x = g.placeholder("x", {}, "f32[4, s0] (1, 4)");
  Node* y = g.placeholder("*args", Argument(1.5));
  Node* w = g.get_attr("layer.weight");
  Node* a = g.call_function(op("add"), t({x, w}), Argument::dict({{"alpha", 2}, {"odd key", y}}));
  Node* m = g.call_module("layer.fc", t({a}));
  m->set_name("odd name");
  Node* f = g.call_method("float", t({m}));
  f->meta().set("stack_trace", "line 1\nline 2");
  g.output(Argument::list({f, Argument::dict({{"y", t({y})}})}));
  const std::string text = print_text(g);
  EXPECT_EQ(text,
            "fx 1\n"
            "graph:\n"
            "  %x : f32[4, s0] (1, 4) = placeholder\n"
            "  %_args = placeholder *args(1.5)\n"
            "  %layer_weight = get_attr layer.weight\n"
            "  %add = _operator:add(%x, %layer_weight, alpha=2, \"odd key\"=%_args)\n"
            "  %\"odd name\" = call_module layer.fc(%add)\n"
            "  %float_1 = call_method float(%\"odd name\") !{\"stack_trace\": \"line 1\\nline 2\"}\n"
            "  return [%float_1, {\"y\": (%_args,)}]\n");
  const GraphPtr read = parse_graph(text);
  EXPECT_EQ(print_text(*read), text);
  read->lint();
  EXPECT_EQ(read->to_string(), g.to_string());
  std::vector<Node*> nodes;
  for (Node* n : read->nodes()) nodes.push_back(n);
  EXPECT_EQ(nodes[3]->callable().identity(), op("add")->identity());
  EXPECT_EQ(nodes[0]->num_users(), 1u);
  EXPECT_EQ(nodes[5]->meta().find("stack_trace")->as_str(), "line 1\nline 2");
}

TEST(Text, EveryKindOfValue) {
  const double inf = std::numeric_limits<double>::infinity();
  const Argument values[] = {{},
                             true,
                             false,
                             0,
                             std::numeric_limits<int64_t>::min(),
                             std::numeric_limits<int64_t>::max(),
                             0.0,
                             -0.0,
                             0.1,
                             5e-324,
                             1.7976931348623157e308,
                             1e16,
                             inf,
                             -inf,
                             std::bit_cast<double>(uint64_t{0x7ff8000000000000}),
                             std::bit_cast<double>(uint64_t{0xfff8000000000001}),
                             std::complex<double>(-0.0, inf),
                             "",
                             "a\"b\\c\n\t\x01\x7f",
                             "gr\xc3\xbc\xc3\x9f",
                             std::string_view("\0\xff\xed\xa0\x80", 5),
                             DType::BFloat16,
                             Device{1, 3},
                             Device{14, -1},
                             Layout::SparseBsc,
                             MemoryFormat::ChannelsLast3d,
                             Argument::ellipsis(),
                             t({}),
                             t({1}),
                             t({1, t({2, "x"})}),
                             Argument::list({}),
                             Argument::list({1.0, Argument::list({})}),
                             Argument::dict({}),
                             Argument::dict({{1, "a"}, {t({1, 2}), Argument()}}),
                             Argument::slice({}, 3, -1),
                             Argument::range(0, 9, 2),
                             Argument::named_tuple(op("add"), std::initializer_list<Argument>{1, 2.0}),
                             Argument(ObjectRef(op("mul")))};
  for (const Argument& v : values) {
    const std::string text = print_text(v);
    EXPECT_EQ(parse_value(text), v) << text;
    EXPECT_EQ(print_text(parse_value(text)), text);
  }
  EXPECT_EQ(print_text(values[15]), "nan(0xfff8000000000001)");
  EXPECT_EQ(print_text(values[20]), "\"\\x00\\xff\\xed\\xa0\\x80\"");
}

TEST(Text, WhatAProgramDoesNotHaveIsKept) {
  const std::string text = with_header(
      "value \"\" = @enum(\"m:Color\", value=3)\n"
      "graph \"main\":\n"
      "  %x : @name(\"torch:Tensor\") = placeholder\n"
      "  %y = torch.nn.functional:gelu(%x, approximate=\"tanh\")\n"
      "  %z = call_function \"my module:f\"(%y)\n"
      "  return aten\n");
  EXPECT_STARTS_WITH(error_of([&] { parse_text(text); }), "ValueError: fx text, line 7, column 10: 'aten' is no value");
  const std::string good = text.substr(0, text.find("return")) + "return %z\n";
  const TextDocument d = parse_text(good);
  EXPECT_EQ(print_text(d), good);
  const Ref<GraphModule> gm = GraphModule::create(make_ref<BasicModule>(), d.graphs[0].second);
  EXPECT_STARTS_WITH(error_of([&] { run(*gm, {tensor(1)}); }),
                     "NameError: this program has no function torch.nn.functional:gelu");
}

TEST(Text, TwoSpellingsOfOperators) {
  const GraphPtr g = parse_graph(
      "# a comment\nfx 1\n\ngraph:  # one graph\n  %x = placeholder\r\n"
      "%a=operator:add( %x ,2,)\n  %b = call_function operator.neg(%a)\n  return (%a, %b,)\n");
  EXPECT_EQ(g->size(), 4u);
  EXPECT_EQ(names(*g), (Names{"x", "a", "b", "output"}));
  EXPECT_EQ(g->output_node()->arg(0)[1].as_node()->callable().qualified_name(), "_operator.neg");
}

TEST(Text, ErrorsSayWhereAndWhat) {
  const std::string at = "ValueError: fx text, line ";
  EXPECT_EQ(error_of([] { parse_text(""); }), at + "1, column 1: a text begins with the line: fx 1");
  EXPECT_EQ(error_of([] { parse_text("fx 2\n"); }), at + "1, column 4: format 2: this version of fxjit reads 1");
  EXPECT_EQ(parse_error("graph:\n  %y = operator:neg(%x)\n"),
            at + "3, column 21: there is no node %x before this line");
  EXPECT_EQ(parse_error("graph:\n  %x = placeholder\n  %x = placeholder\n"),
            at + "4, column 3: there is a node %x already");
  EXPECT_EQ(parse_error("graph:\n  %x = call_fun f()\n"),
            at + "3, column 8: 'call_fun' is no opcode, and functions are written as module:name");
  EXPECT_EQ(parse_error("graph:\n  %x = placeholder(1"),
            at + "3, column 21: expected ',' or ')', found the end of the text");
  EXPECT_EQ(parse_error("graph:\n  %x = operator:neg(a=1, a=2)\n"), at + "3, column 30: a keyword is given twice");
  EXPECT_EQ(parse_error("graph:\n  %x = operator:neg(a=1, 2)\n"),
            at + "3, column 26: a positional argument behind one with a keyword");
  EXPECT_EQ(parse_error("value a = 1\nvalue a = 2\n"), at + "3, column 1: the name \"a\" is given twice");
  EXPECT_EQ(parse_error("value a = 1 2\n"), at + "2, column 13: expected the end of the line, found '2'");
  EXPECT_EQ(value_error("9223372036854775808"), at + "1, column 1: an integer of more than 64 bits");
  EXPECT_EQ(value_error("1e999"), at + "1, column 1: a number beyond the range of a double");
  EXPECT_EQ(value_error("(1)"), at + "1, column 2: a tuple of one item ends with a comma: (x,)");
  EXPECT_EQ(value_error("\"abc\n"), at + "1, column 1: a string without closing quotes: line ends are written as \\n");
  EXPECT_EQ(value_error("\"\\q\""),
            at + "1, column 2: escapes are \\n, \\t, \\\", \\\\ and \\x with two hexadecimal digits");
  EXPECT_EQ(value_error("nan(0x3ff0000000000000)"), at + "1, column 1: these bits are a number");
  EXPECT_EQ(value_error("device(\"nowhere\")"), at + "1, column 1: there is no device 'nowhere'");
}

TEST(Text, WhatHasNoTextIsRefused) {
  Graph g, other;
  Node* x = g.placeholder("x");
  g.call_method("neg", t({other.placeholder("z")}));
  EXPECT_EQ(error_of([&] { print_text(g); }),
            "ValueError: cannot be written as text: %z is no earlier node of this graph (at node neg of opcode "
            "call_method)");
  EXPECT_EQ(error_of([&] { print_text(Argument(tensor(1))); }),
            "ValueError: cannot be written as text: a value of type torch.Tensor");
  EXPECT_EQ(error_of([&] { print_text(Argument(x)); }),
            "ValueError: cannot be written as text: %x is no earlier node of this graph");
}

TEST(Text, NestingIsBounded) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(print_text(parse_value(nested(kMaxTextDepth))), nested(kMaxTextDepth));
  EXPECT_EQ(value_error(nested(1000000)), "ValueError: fx text, line 1, column 101: a value is nested deeper than 100");
  Argument deep;
  for (int i = 0; i < kMaxTextDepth; ++i) deep = Argument::list({deep});
  EXPECT_EQ(error_of([&] { print_text(deep); }),
            "ValueError: cannot be written as text: a value is nested deeper than 100");
}

}  // namespace
}  // namespace fxjit::fx::test
