// Pictures of graphs: DOT for Graphviz, and SVG that needs no other program.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::fx {

// What became of a node in a compiled program decides its colour; None: the opcode does.
enum class DrawClass : uint8_t { None, Kernel, Library, Aten, Python, Host };

FXJIT_API std::string_view to_string(DrawClass c);  // "kernel"

struct DrawNode {
  DrawClass drawn_as = DrawClass::None;
  std::string detail = {};  // further lines below "name = target", e.g. "f32[2, 8]"; '\n' separates them
  bool hidden = false;
};

struct DrawOptions {
  std::string title = {};
  std::function<DrawNode(const Node&)> node = {};  // empty: no node has details
};

// Both are linear in nodes and edges, with a constant number of sorted sweeps over the layers. Any text is escaped.
FXJIT_API std::string draw_dot(const Graph& graph, const DrawOptions& options = {});
// Layers from top to bottom: inputs above what reads them. Hovering over a box shows the whole node.
FXJIT_API std::string draw_svg(const Graph& graph, const DrawOptions& options = {});

}  // namespace fxjit::inline v0::fx
