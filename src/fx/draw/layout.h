// Places for the boxes of a layered drawing.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace fxjit::inline v0::fx::draw {

struct Size {
  double width, height;
};

struct Point {
  double x, y;
};

struct Layout {
  std::vector<Point> centres;              // of the boxes
  std::vector<std::vector<Point>> routes;  // of the arrows: from the producer's lower edge to the user's upper one
  double width = 0, height = 0;            // all of it lies in [0, width] × [0, height]
};

// Boxes go to layers by their distance from the inputs, are ordered within a layer by the barycentres of their
// neighbours, and placed in this order as near to them as their widths allow (a least-squares fit by pooling adjacent
// violators). An arrow across layers bends around the boxes between. Arrows must run from lower to higher indices.
Layout lay_out(std::span<const Size> boxes, std::span<const std::pair<uint32_t, uint32_t>> arrows);

}  // namespace fxjit::inline v0::fx::draw
