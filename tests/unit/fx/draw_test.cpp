// Pictures: what is in them, where boxes lie, and that they stay linear.
#include <algorithm>

#include "fx/draw/layout.h"
#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

using draw::Layout;
using draw::Size;
using Arrows = std::vector<std::pair<uint32_t, uint32_t>>;

// No two boxes overlap, arrows go down, everything lies inside.
void check_layout(const Layout& l, const std::vector<Size>& boxes, const Arrows& arrows) {
  ASSERT_EQ(l.centres.size(), boxes.size());
  std::vector<size_t> order(boxes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(l.centres[a].y, l.centres[a].x) < std::pair(l.centres[b].y, l.centres[b].x);
  });
  for (size_t k = 0; k < order.size(); ++k) {
    const size_t i = order[k];
    EXPECT_GE(l.centres[i].x - boxes[i].width / 2, -1e-6);
    EXPECT_LE(l.centres[i].x + boxes[i].width / 2, l.width + 1e-6);
    EXPECT_LE(l.centres[i].y + boxes[i].height / 2, l.height + 1e-6);
    if (k == 0 || l.centres[order[k - 1]].y != l.centres[i].y) continue;
    const size_t left = order[k - 1];
    EXPECT_GE(l.centres[i].x - l.centres[left].x, (boxes[i].width + boxes[left].width) / 2 + 1);
  }
  for (size_t a = 0; a < arrows.size(); ++a) {
    const auto& route = l.routes[a];
    ASSERT_GE(route.size(), 2u);
    for (size_t i = 1; i < route.size(); ++i) EXPECT_GE(route[i].y, route[i - 1].y);
    EXPECT_DOUBLE_EQ(route.front().x, l.centres[arrows[a].first].x);
    EXPECT_DOUBLE_EQ(route.back().x, l.centres[arrows[a].second].x);
  }
}

TEST(DrawLayout, DiamondWithAnArrowAroundIt) {
  const std::vector<Size> boxes(5, Size{50, 20});
  const Arrows arrows = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 4}, {3, 4}};
  const Layout l = draw::lay_out(boxes, arrows);
  check_layout(l, boxes, arrows);
  EXPECT_EQ(l.centres[1].y, l.centres[2].y);
  EXPECT_EQ(l.routes[4].size(), 2u + 2 * 2);  // around two layers
}

TEST(DrawLayout, ChainIsStraight) {
  std::vector<Size> boxes;
  Arrows arrows;
  for (uint32_t i = 0; i < 20; ++i) {
    boxes.push_back({30.0 + 10 * (i % 3), 20});
    if (i) arrows.emplace_back(i - 1, i);
  }
  const Layout l = draw::lay_out(boxes, arrows);
  check_layout(l, boxes, arrows);
  for (const auto& c : l.centres) EXPECT_NEAR(c.x, l.centres[0].x, 1e-6);
}

TEST(DrawLayout, ManyShapes) {
  uint32_t seed = 1;
  const auto random = [&](uint32_t n) { return (seed = seed * 1664525 + 1013904223) / 65536 % n; };
  for (int round = 0; round < 30; ++round) {
    const uint32_t count = 1 + random(120);
    std::vector<Size> boxes;
    Arrows arrows;
    for (uint32_t i = 0; i < count; ++i) {
      boxes.push_back({20.0 + random(200), 15.0 + random(40)});
      for (uint32_t k = random(4); i && k > 0; --k) arrows.emplace_back(random(i), i);
    }
    check_layout(draw::lay_out(boxes, arrows), boxes, arrows);
  }
  EXPECT_EQ(draw::lay_out({}, {}).centres.size(), 0u);
}

// An input that the last of many nodes reads: its arrow must not get a bend per layer.
TEST(DrawLayout, LongArrowsStayLinear) {
  std::vector<Size> boxes(2000, Size{40, 20});
  Arrows arrows;
  for (uint32_t i = 1; i < boxes.size(); ++i) {
    arrows.emplace_back(i - 1, i);
    arrows.emplace_back(0, i);
  }
  size_t points = 0;
  for (const auto& route : draw::lay_out(boxes, arrows).routes) points += route.size();
  EXPECT_LT(points, arrows.size() * 4 + 48 * 48 * 2);
}

Graph& sample(GraphPtr& g) {
  g = Graph::create();
  Node* x = g->placeholder("x");
  Node* w = g->get_attr("layer.w");
  Node* a = g->call_function(builtin_function("_operator.add"), Argument::tuple({x, w}));
  Node* r = g->call_method("relu", Argument::tuple({a, "<&\"\\>"}));
  g->output(r);
  return *g;
}

TEST(Draw, DotAndSvgShowEveryNodeAndEdge) {
  GraphPtr g;
  sample(g);
  DrawOptions options;
  options.title = "a \"title\" & <more>";
  options.node = [](const Node& n) -> DrawNode {
    if (n.op() == Opcode::CallFunction) return {DrawClass::Kernel, "kernel 0\nf32[2]"};
    return {};
  };
  const std::string dot = draw_dot(*g, options), svg = draw_svg(*g, options);
  EXPECT_NE(dot.find("\"a \\\"title\\\" & <more>\""), dot.npos);
  EXPECT_NE(dot.find("\"x\" -> \"add\""), dot.npos);
  EXPECT_NE(dot.find("label=\"add\\nkernel 0\\nf32[2]\", fillcolor=\"#cdeccd\""), dot.npos) << dot;
  for (const char* text : {">x</text>", ">layer.w</text>", ">add</text>", ">relu = .relu()</text>", ">output</text>",
                           "kernel 0", "a &quot;title&quot; &amp; &lt;more&gt;", ">kernel 1</text>", "&lt;&amp;"}) {
    EXPECT_NE(svg.find(text), svg.npos) << text << "\n" << svg;
  }
  EXPECT_EQ(svg.find("<&"), svg.npos);
  size_t paths = 0;
  for (size_t at = svg.find("<path d=\"M"); at != svg.npos; at = svg.find("<path d=\"M", at + 1)) ++paths;
  EXPECT_EQ(paths, 4u + 1);  // and the arrow head
}

TEST(Draw, HiddenNodesTakeTheirArrowsAlong) {
  GraphPtr g;
  sample(g);
  DrawOptions options;
  options.node = [](const Node& n) { return DrawNode{DrawClass::None, "", n.op() == Opcode::GetAttr}; };
  const std::string dot = draw_dot(*g, options);
  EXPECT_EQ(dot.find("[label=\"layer"), dot.npos);
  EXPECT_NE(draw_svg(Graph()).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace fxjit::fx::test
