#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fx/rewrite/split_parts.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

struct TaggedPart {
  std::string name;
  GraphPtr graph = Graph::create();
  std::unordered_map<const Node*, Node*> nodes;  // node of the whole graph → node of this one
  std::vector<Node*> inputs, outputs;            // of the whole graph
  TargetMap targets;
  std::unordered_set<std::string_view> known_targets;
};

class TagSplitter {
 public:
  TagSplitter(const Graph& graph, std::span<const std::string> tags) : graph_(graph), part_of_(graph.created(), kNone) {
    result_.graph = Graph::create();
    for (const std::string& tag : tags) {
      if (index_.emplace(tag, parts_.size()).second) parts_.emplace_back().name = tag;
    }
  }

  SplitGraph run(FunctionRef<std::string(Node*)> tag_of) {
    const Node* output = graph_.output_node();
    if (!output) throw RuntimeError("the graph to split has no output node");
    for (Node* n : graph_.nodes()) {
      if (n->op() == Opcode::Placeholder) outer_[n] = result_.graph->node_copy(*n);
      if (n->op() == Opcode::Placeholder || n->op() == Opcode::GetAttr || n->op() == Opcode::Output) continue;
      move(n, tag_of(n));
    }
    for (Node* n : output->all_input_nodes()) use_outside(n);
    for (TaggedPart& part : parts_) call(part);
    result_.graph->output(map_arg(output->arg(0), [&](Node* n) { return Argument(outer_.at(n)); }));
    return std::move(result_);
  }

  bool return_tuple = false;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void move(Node* n, const std::string& tag) {
    const auto it = index_.find(tag);
    if (it == index_.end()) {
      throw KeyError(concat("node ", n->name(), " has the tag '", tag, "', which is not among those to split by"));
    }
    for (Node* input : n->all_input_nodes()) {
      const size_t from = part_of_[input->id()];
      if (from == kNone || from <= it->second) continue;
      throw AssertionError(concat("node ", n->name(), " of tag '", tag, "' reads ", input->name(), " of tag '",
                                  parts_[from].name, "', which stands behind it"));
    }
    part_of_[n->id()] = it->second;
    TaggedPart& part = parts_[it->second];
    if (n->op() == Opcode::CallModule) add_target(part, *n);
    part.nodes[n] = part.graph->node_copy(*n, [&](Node* input) { return Argument(inside(part, it->second, input)); });
  }

  // What stands for `input` in a part: its copy, a get_attr node of its own, or a new placeholder.
  Node* inside(TaggedPart& part, size_t index, Node* input) {
    Node*& found = part.nodes[input];
    if (found) return found;
    if (input->op() == Opcode::GetAttr) {
      add_target(part, *input);
      return found = part.graph->node_copy(*input);
    }
    found = part.graph->placeholder(input->name(), {}, input->type());
    copy_meta(*input, found);
    part.inputs.push_back(input);
    if (part_of_[input->id()] != index) use_outside(input);
    return found;
  }

  static void add_target(TaggedPart& part, const Node& n) {
    const std::string_view path = n.target_str();
    if (part.known_targets.insert(path).second) part.targets.emplace_back(path, path);
  }

  void use_outside(Node* n) {
    if (!outside_.insert(n).second) return;
    if (n->op() == Opcode::GetAttr) {
      outer_[n] = result_.graph->node_copy(*n);
      result_.targets.emplace_back(n->target_str(), n->target_str());
    } else if (part_of_[n->id()] != kNone) {
      parts_[part_of_[n->id()]].outputs.push_back(n);
    }
  }

  void call(TaggedPart& part) {
    std::vector<Argument> values, args;
    for (Node* n : part.outputs) values.push_back(part.nodes.at(n));
    for (Node* n : part.inputs) args.push_back(outer_.at(n));
    const bool single = values.size() == 1 && !return_tuple;
    part.graph->output(single ? values[0] : Argument::tuple(values));
    Node* made = result_.graph->call_module(part.name, Argument::tuple(args));
    for (size_t k = 0; k < values.size(); ++k) {
      outer_[part.outputs[k]] =
          single ? made
                 : result_.graph->call_function(builtin_function("_operator.getitem"), Argument::tuple({made, k}));
    }
    result_.partitions.push_back({part.name, part.graph, std::move(part.targets)});
  }

  const Graph& graph_;
  std::vector<TaggedPart> parts_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<size_t> part_of_;                   // by id of the node
  std::unordered_set<const Node*> outside_;       // nodes that are read outside of their part
  std::unordered_map<const Node*, Node*> outer_;  // node of the whole graph → of the outer one
  SplitGraph result_;
};

}  // namespace

GraphModuleRef split_by_tags(const GraphModule& module, std::span<const std::string> tags,
                             FunctionRef<std::string(Node*)> tag_of, bool return_tuple, TargetMap* qualname_map) {
  TagSplitter splitter(module.graph(), tags);
  splitter.return_tuple = return_tuple;
  return assemble_split(module, splitter.run(tag_of), qualname_map);
}

}  // namespace fxjit::inline v0::fx
