#include <algorithm>
#include <cmath>
#include <cstdio>

#include "fx/draw/layout.h"
#include "fx/draw/model.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

namespace {

using draw::Box;
using draw::Point;
using support::concat;

constexpr double kFont = 11, kLine = 14, kCharacter = 6.7, kPadX = 9, kPadY = 5, kMargin = 16;

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", v);
  return text;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n') out += c;
    }
  }
  return out;
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

draw::Size size_of(const Box& box) {
  size_t longest = 0;
  for (const std::string& line : box.lines) longest = std::max(longest, characters(line));
  return {static_cast<double>(longest) * kCharacter + 2 * kPadX,
          static_cast<double>(box.lines.size()) * kLine + 2 * kPadY};
}

void add_box(std::string& out, const Box& box, Point centre) {
  const draw::Size size = size_of(box);
  const draw::Colour& colour = draw::colours()[box.colour];
  const double top = centre.y - size.height / 2;
  out += concat("<g><title>", escaped(box.tooltip), "</title><rect x=\"", number(centre.x - size.width / 2), "\" y=\"",
                number(top), "\" width=\"", number(size.width), "\" height=\"", number(size.height), "\" rx=\"",
                box.rounded ? number(size.height / 2) : "3", "\" fill=\"", colour.fill, "\" stroke=\"", colour.border,
                "\"/>");
  for (size_t i = 0; i < box.lines.size(); ++i) {
    const double y = top + kPadY + kLine * static_cast<double>(i) + kFont;
    out += concat("<text x=\"", number(centre.x), "\" y=\"", number(y), "\"", i ? " class=\"d\"" : "", ">",
                  escaped(box.lines[i]), "</text>");
  }
  out += "</g>\n";
}

// A curve that leaves and meets each point vertically; straight where two points lie below each other.
void add_route(std::string& out, const std::vector<Point>& route) {
  out += concat("<path d=\"M", number(route[0].x), " ", number(route[0].y));
  for (size_t i = 1; i < route.size(); ++i) {
    const Point a = route[i - 1];
    Point b = route[i];
    if (i + 1 == route.size()) b.y -= 1;
    if (std::abs(a.x - b.x) < 0.05) {
      out += concat("V", number(b.y));
      continue;
    }
    const double middle = (a.y + b.y) / 2;
    out += concat("C", number(a.x), " ", number(middle), " ", number(b.x), " ", number(middle), " ", number(b.x), " ",
                  number(b.y));
  }
  out += "\"/>\n";
}

// One square per class of boxes that occurs, with their number.
double add_legend(std::string& out, const std::vector<Box>& boxes, double y) {
  std::vector<size_t> counts(draw::colours().size());
  for (const Box& box : boxes) ++counts[box.colour];
  double x = kMargin;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const draw::Colour& colour = draw::colours()[i];
    const std::string text = concat(colour.label, " ", counts[i]);
    out += concat("<rect x=\"", number(x), "\" y=\"", number(y), "\" width=\"11\" height=\"11\" rx=\"2\" fill=\"",
                  colour.fill, "\" stroke=\"", colour.border, "\"/><text class=\"l\" x=\"", number(x + 16), "\" y=\"",
                  number(y + 10), "\">", escaped(text), "</text>\n");
    x += 16 + static_cast<double>(characters(text)) * kCharacter + 16;
  }
  return x;
}

}  // namespace

std::string draw_svg(const Graph& graph, const DrawOptions& options) {
  const draw::Picture picture = draw::make_picture(graph, options);
  std::vector<draw::Size> sizes;
  for (const Box& box : picture.boxes) sizes.push_back(size_of(box));
  draw::Layout layout = draw::lay_out(sizes, picture.arrows);
  std::string head, body;
  double top = kMargin;
  if (!options.title.empty()) {
    head += concat("<text class=\"t\" x=\"", number(kMargin), "\" y=\"", number(top + 11), "\">",
                   escaped(options.title), "</text>\n");
    top += 24;
  }
  const double title = static_cast<double>(characters(options.title)) * 8.5 + kMargin;
  const double head_width = std::max(title, add_legend(head, picture.boxes, top));
  top += 11 + 20;
  const double width = std::max(layout.width + 2 * kMargin, head_width);
  const double left = (width - layout.width) / 2;
  for (auto& route : layout.routes) {
    for (Point& p : route) p.x += left, p.y += top;
    add_route(body, route);
  }
  std::string boxes;
  for (size_t i = 0; i < picture.boxes.size(); ++i) {
    add_box(boxes, picture.boxes[i], {layout.centres[i].x + left, layout.centres[i].y + top});
  }
  const std::string w = number(width), h = number(layout.height + top + kMargin);
  return concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", w, "\" height=\"", h, "\" viewBox=\"0 0 ", w, " ",
                h,
                "\">\n<style>text{font:11px monospace;text-anchor:middle;fill:#1a1a1a}text.d{fill:#555}"
                "text.l{text-anchor:start}text.t{font:bold 14px monospace;text-anchor:start}"
                "path.e,.e path{fill:none;stroke:#777;stroke-width:1.1}</style>\n"
                "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
                "orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2z\" fill=\"#777\"/></marker></defs>\n"
                "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                head, "<g class=\"e\" marker-end=\"url(#a)\">\n", body, "</g>\n", boxes, "</svg>\n");
}

}  // namespace fxjit::inline v0::fx
