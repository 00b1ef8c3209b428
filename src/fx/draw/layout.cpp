#include "fx/draw/layout.h"

#include <algorithm>
#include <numeric>

namespace fxjit::inline v0::fx::draw {

namespace {

constexpr double kGapX = 18, kGapY = 34, kGapBend = 10;
constexpr int kOrderSweeps = 12, kPlaceSweeps = 32;
// An arrow over more layers than this is one straight line: bends for it would make the drawing quadratic.
constexpr uint32_t kLongestArrow = 48;

// A box, or the place where an arrow crosses a layer.
struct Item {
  uint32_t layer = 0;
  uint32_t place = 0;  // within the layer
  double width = 0, x = 0;
  bool bend = false;
  std::vector<uint32_t> above, below;
};

struct Layered {
  std::vector<Item> items;                    // the boxes first
  std::vector<std::vector<uint32_t>> layers;  // items from left to right
  std::vector<std::vector<uint32_t>> chains;  // of each arrow: the items that it passes, both ends included
};

using Arrows = std::span<const std::pair<uint32_t, uint32_t>>;

std::vector<uint32_t> layers_of(size_t count, Arrows arrows) {
  std::vector<std::vector<uint32_t>> users(count);
  std::vector<bool> has_input(count);
  for (auto [from, to] : arrows) users[from].push_back(to), has_input[to] = true;
  std::vector<uint32_t> layer(count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t user : users[i]) layer[user] = std::max(layer[user], layer[i] + 1);
  }
  // What reads nothing goes directly above its first reader: parameters stand beside the operation that uses them.
  for (uint32_t i = 0; i < count; ++i) {
    if (has_input[i] || users[i].empty()) continue;
    uint32_t first = ~0U;
    for (uint32_t user : users[i]) first = std::min(first, layer[user]);
    layer[i] = first - 1;
  }
  return layer;
}

Layered make_layers(std::span<const Size> boxes, Arrows arrows) {
  Layered l;
  const std::vector<uint32_t> layer = layers_of(boxes.size(), arrows);
  l.items.resize(boxes.size());
  uint32_t count = 0;
  for (size_t i = 0; i < boxes.size(); ++i) {
    l.items[i].layer = layer[i];
    l.items[i].width = boxes[i].width;
    count = std::max(count, layer[i] + 1);
  }
  for (auto [from, to] : arrows) {
    std::vector<uint32_t> chain = {from};
    if (layer[to] - layer[from] <= kLongestArrow) {
      for (uint32_t at = layer[from] + 1; at < layer[to]; ++at) {
        chain.push_back(static_cast<uint32_t>(l.items.size()));
        Item bend;
        bend.layer = at, bend.bend = true;
        l.items.push_back(bend);
      }
      chain.push_back(to);
      for (size_t i = 0; i + 1 < chain.size(); ++i) {
        l.items[chain[i]].below.push_back(chain[i + 1]);
        l.items[chain[i + 1]].above.push_back(chain[i]);
      }
    } else {
      chain.push_back(to);
    }
    l.chains.push_back(std::move(chain));
  }
  l.layers.resize(count);
  for (uint32_t i = 0; i < l.items.size(); ++i) {
    l.items[i].place = static_cast<uint32_t>(l.layers[l.items[i].layer].size());
    l.layers[l.items[i].layer].push_back(i);
  }
  return l;
}

void order_layer(Layered& l, std::vector<uint32_t>& layer, bool by_above) {
  std::vector<std::pair<double, uint32_t>> keys;
  for (uint32_t i : layer) {
    const Item& item = l.items[i];
    const auto& neighbours = by_above ? item.above : item.below;
    double sum = 0;
    for (uint32_t n : neighbours) {
      // Relative places: layers differ in their number of items.
      sum += (l.items[n].place + 0.5) / static_cast<double>(l.layers[l.items[n].layer].size());
    }
    const double own = (item.place + 0.5) / static_cast<double>(layer.size());
    keys.emplace_back(neighbours.empty() ? own : sum / static_cast<double>(neighbours.size()), i);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (uint32_t i = 0; i < keys.size(); ++i) {
    layer[i] = keys[i].second;
    l.items[layer[i]].place = i;
  }
}

void order(Layered& l) {
  for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
    if (sweep % 2 == 0) {
      for (auto& layer : l.layers) order_layer(l, layer, true);
    } else {
      for (auto it = l.layers.rbegin(); it != l.layers.rend(); ++it) order_layer(l, *it, false);
    }
  }
}

double distance(const Item& a, const Item& b) {
  return a.width / 2 + b.width / 2 + (a.bend && b.bend ? kGapBend : kGapX);
}

// Items of one layer as near as possible to where they want to be, in order and apart.
void place_layer(Layered& l, const std::vector<uint32_t>& layer, bool by_above, bool by_below) {
  struct Pool {
    double sum, weight;
    size_t end;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  std::vector<double> offset(layer.size());
  for (size_t i = 0; i < layer.size(); ++i) {
    const Item& item = l.items[layer[i]];
    if (i) offset[i] = offset[i - 1] + distance(l.items[layer[i - 1]], item);
    double sum = 0, weight = 0;
    const auto pull = [&](std::vector<uint32_t> Item::* side, std::vector<uint32_t> Item::* opposite) {
      for (uint32_t n : item.*side) {
        const Item& other = l.items[n];
        const bool chain = (item.*side).size() == 1 && (other.*opposite).size() == 1;
        // Straight runs, of bends first, matter more than a box in the middle of its arrows.
        const double w = item.bend && other.bend ? 16 : chain ? 8 : item.bend || other.bend ? 2 : 1;
        sum += w * other.x, weight += w;
      }
    };
    if (by_above) pull(&Item::above, &Item::below);
    if (by_below) pull(&Item::below, &Item::above);
    if (weight == 0) sum = item.x * 0.1, weight = 0.1;
    pools.push_back({sum - weight * offset[i], weight, i + 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back() = {pools.back().sum + last.sum, pools.back().weight + last.weight, last.end};
    }
  }
  size_t i = 0;
  for (const Pool& pool : pools) {
    for (; i < pool.end; ++i) l.items[layer[i]].x = pool.mean() + offset[i];
  }
}

void place(Layered& l) {
  for (const auto& layer : l.layers) {
    double x = 0;
    for (size_t i = 0; i < layer.size(); ++i) {
      if (i) x += distance(l.items[layer[i - 1]], l.items[layer[i]]);
      l.items[layer[i]].x = x;
    }
    for (uint32_t i : layer) l.items[i].x -= x / 2;
  }
  for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
    const bool both = sweep >= kPlaceSweeps / 4;
    if (sweep % 2 == 0) {
      for (const auto& layer : l.layers) place_layer(l, layer, true, both);
    } else {
      for (auto it = l.layers.rbegin(); it != l.layers.rend(); ++it) place_layer(l, *it, both, true);
    }
  }
}

}  // namespace

Layout lay_out(std::span<const Size> boxes, Arrows arrows) {
  Layered l = make_layers(boxes, arrows);
  order(l);
  place(l);
  double left = 0, right = 0;
  for (size_t i = 0; i < l.items.size(); ++i) {
    const Item& item = l.items[i];
    const double low = item.x - item.width / 2, high = item.x + item.width / 2;
    left = i ? std::min(left, low) : low;
    right = i ? std::max(right, high) : high;
  }
  Layout out;
  std::vector<double> middle(l.layers.size()), half(l.layers.size());
  double y = 0;
  for (size_t at = 0; at < l.layers.size(); ++at) {
    for (uint32_t i : l.layers[at]) {
      if (!l.items[i].bend) half[at] = std::max(half[at], boxes[i].height / 2);
    }
    middle[at] = y + half[at];
    y += 2 * half[at] + kGapY;
  }
  out.width = right - left;
  out.height = std::max(0.0, y - kGapY);
  for (size_t i = 0; i < boxes.size(); ++i) out.centres.push_back({l.items[i].x - left, middle[l.items[i].layer]});
  for (const auto& chain : l.chains) {
    std::vector<Point> route;
    for (size_t i = 0; i < chain.size(); ++i) {
      const Item& item = l.items[chain[i]];
      const double x = item.x - left, centre = middle[item.layer];
      if (item.bend) {  // straight down beside the boxes of its layer
        route.push_back({x, centre - half[item.layer]});
        route.push_back({x, centre + half[item.layer]});
      } else {
        const double height = boxes[chain[i]].height / 2;
        route.push_back({x, i == 0 ? centre + height : centre - height});
      }
    }
    out.routes.push_back(std::move(route));
  }
  return out;
}

}  // namespace fxjit::inline v0::fx::draw
