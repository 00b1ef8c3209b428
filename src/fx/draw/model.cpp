#include "fx/draw/model.h"

#include <algorithm>

#include "fx/printer.h"
#include "fxjit/fx/node_ranges.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

std::string_view to_string(DrawClass c) {
  switch (c) {
    case DrawClass::None:
      return "none";
    case DrawClass::Kernel:
      return "kernel";
    case DrawClass::Library:
      return "library";
    case DrawClass::Aten:
      return "ATen";
    case DrawClass::Python:
      return "Python";
    case DrawClass::Host:
      return "no code";
  }
  return "none";
}

namespace draw {
namespace {

constexpr size_t kLongestLine = 44;  // characters; the tooltip has the rest

// Characters, not bytes: continuation bytes of UTF-8 do not count.
std::string shortened(std::string text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (++count > kLongestLine) return text.substr(0, i) + "…";
  }
  return text;
}

// Rows of colours(): the classes of compiled nodes in the order of DrawClass, then the opcodes in theirs.
size_t colour_of(const Node& n, DrawClass c) {
  return c == DrawClass::None ? 5 + static_cast<size_t>(n.op()) : static_cast<size_t>(c) - 1;
}

std::string last_name(const std::string& dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == std::string::npos || dot + 1 == dotted.size() ? dotted : dotted.substr(dot + 1);
}

// "add_1 = add"; "add" where name and target say the same.
std::string headline(const Node& n) {
  const std::string name(n.name());
  switch (n.op()) {
    case Opcode::Output:
      return "output";
    case Opcode::Placeholder: {
      const std::string target = target_text(n.target());
      return target == name ? name : name + " = " + target;
    }
    case Opcode::GetAttr:
    case Opcode::CallModule: {
      std::string target = target_text(n.target());
      std::string as_name = target;
      std::replace(as_name.begin(), as_name.end(), '.', '_');
      return as_name == name ? target : name + " = " + target;
    }
    case Opcode::CallMethod:
      return name + " = ." + target_text(n.target()) + "()";
    case Opcode::CallFunction:
    case Opcode::Root:
      break;
  }
  // An overload is named by its operator too: "add.Tensor".
  std::string target = target_text(n.target());
  if (target.rfind("torch.ops.", 0) == 0) {
    target = target.substr(target.find('.', 10) + 1);
  } else {
    target = last_name(target);
  }
  return target == name ? name : name + " = " + target;
}

void add_lines(std::vector<std::string>& lines, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(shortened(text.substr(at, end - at)));
    at = end + 1;
  }
}

}  // namespace

const std::vector<Colour>& colours() {
  static const std::vector<Colour> rows = {
      {"kernel", "#cdeccd", "#4f9a4f"},    {"library call", "#cfe0f7", "#4a77b4"}, {"ATen call", "#fbe6b8", "#c08a1e"},
      {"Python", "#f6cccc", "#bb4a4a"},    {"no code", "#eeeeee", "#999999"},      {"input", "#e6e0f3", "#7a68ad"},
      {"attribute", "#f3e3ee", "#a8668f"}, {"function", "#dff0ea", "#5a9c85"},     {"method", "#e4ecf6", "#6b8cb5"},
      {"module", "#f7ecd6", "#b39150"},    {"output", "#d9d4e7", "#5f5190"},       {"root", "#ffffff", "#000000"},
  };
  return rows;
}

Picture make_picture(const Graph& graph, const DrawOptions& options) {
  Picture picture;
  constexpr uint32_t kNone = ~0U;
  std::vector<uint32_t> box_of(graph.created(), kNone);
  for (const Node* n : graph.nodes()) {
    DrawNode look;
    if (options.node) look = options.node(*n);
    if (look.hidden) continue;
    const uint32_t at = static_cast<uint32_t>(picture.boxes.size());
    box_of[n->id()] = at;
    Box box{{shortened(headline(*n))},
            n->format_node(),
            std::string(n->name()),
            colour_of(*n, look.drawn_as),
            n->op() == Opcode::Placeholder || n->op() == Opcode::Output || n->op() == Opcode::GetAttr};
    add_lines(box.lines, look.detail);
    picture.boxes.push_back(std::move(box));
    for (const Node* input : n->all_input_nodes()) {
      if (box_of[input->id()] != kNone) picture.arrows.emplace_back(box_of[input->id()], at);
    }
  }
  return picture;
}

}  // namespace draw
}  // namespace fxjit::inline v0::fx
