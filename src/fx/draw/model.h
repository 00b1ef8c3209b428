// What both drawing formats show: a box per node, an arrow per edge.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fxjit/fx/draw.h"

namespace fxjit::inline v0::fx::draw {

// Fill and border of a class of boxes.
struct Colour {
  const char* label;  // in the legend
  const char* fill;
  const char* border;
};

struct Box {
  std::vector<std::string> lines;  // at least one
  std::string tooltip;             // the whole node
  std::string name;
  size_t colour;  // index into colours()
  bool rounded;   // inputs and outputs
};

struct Picture {
  std::vector<Box> boxes;                             // in program order
  std::vector<std::pair<uint32_t, uint32_t>> arrows;  // producer, user: indices into boxes
};

const std::vector<Colour>& colours();
Picture make_picture(const Graph& graph, const DrawOptions& options);

}  // namespace fxjit::inline v0::fx::draw
