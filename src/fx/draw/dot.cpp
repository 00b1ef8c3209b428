#include "fx/draw/model.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

}  // namespace

std::string draw_dot(const Graph& graph, const DrawOptions& options) {
  using support::concat;
  const draw::Picture picture = draw::make_picture(graph, options);
  std::string out = concat("digraph ", quoted(options.title.empty() ? "graph" : options.title), " {\n");
  if (!options.title.empty()) out += concat("  label=", quoted(options.title), ";\n  labelloc=t;\n");
  out += "  rankdir=TB;\n  node [shape=box, style=filled, fontname=\"monospace\", fontsize=11];\n";
  for (const draw::Box& box : picture.boxes) {
    std::string label;
    for (const std::string& line : box.lines) label += (label.empty() ? "" : "\n") + line;
    const draw::Colour& colour = draw::colours()[box.colour];
    out += concat("  ", quoted(box.name), " [label=", quoted(label), ", fillcolor=\"", colour.fill, "\", color=\"",
                  colour.border, "\"", box.rounded ? ", style=\"filled,rounded\"" : "",
                  ", tooltip=", quoted(box.tooltip), "];\n");
  }
  for (auto [from, to] : picture.arrows) {
    out += concat("  ", quoted(picture.boxes[from].name), " -> ", quoted(picture.boxes[to].name), ";\n");
  }
  return out + "}\n";
}

}  // namespace fxjit::inline v0::fx
