// Graphs as torch.fx prints them.
#include <cstdio>

#include "fx/printer.h"
#include "fxjit/fx/graph.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

using support::concat;

std::string target_text(const Argument& target) {
  if (const auto* callable = dynamic_cast<const Callable*>(target.object_or_null())) return callable->pretty_name();
  return str(target);
}

std::string annotation_text(const Argument& type) {
  if (type.is_none()) return "";
  return (type.is_str() ? type.repr() : type.to_string()) + " ";
}

std::string users_text(const Node& n) {
  std::string out = "{";
  for (Node* user : n.users()) {
    if (out.size() > 1) out += ", ";
    out += concat(user->name(), ": None");
  }
  return out + "}";
}

std::string Node::format_node() const {
  if (op_ == Opcode::Output) return "return " + (args_.size() ? str(args_[0]) : "None");
  std::string out = concat("%", name(), " : ", annotation_text(type_), "[num_users=", num_users_,
                           "] = ", fx::to_string(op_), "[target=", target_text(target_), "]");
  switch (op_) {
    case Opcode::Placeholder:
      if (args_.size()) out += "(default=" + str(args_[0]) + ")";
      break;
    case Opcode::CallFunction:
    case Opcode::CallMethod:
    case Opcode::CallModule:
      out += "(args = " + args_.to_string() + ", kwargs = " + kwargs_.to_string() + ")";
      break;
    case Opcode::GetAttr:
    case Opcode::Output:
    case Opcode::Root:
      break;
  }
  return out;
}

std::string Graph::to_string() const {
  std::string text = "graph():";
  for (Node* n : nodes()) text += "\n    " + n->format_node();
  return text;
}

std::string Graph::format_tabular() const {
  const std::string headers[] = {"opcode", "name", "target", "args", "kwargs"};
  std::vector<std::vector<std::string>> rows;
  for (Node* n : nodes()) {
    rows.push_back({std::string(fx::to_string(n->op())), std::string(n->name()), target_text(n->target()),
                    n->args().repr(), n->kwargs().repr()});
  }
  return support::table(headers, rows);
}

void Graph::print_tabular() const {
  const std::string text = format_tabular();
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace fxjit::inline v0::fx
