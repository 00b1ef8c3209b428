#include "fxjit/fx/split_module.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "fx/rewrite/attributes.h"
#include "fx/rewrite/split_parts.h"
#include "fx/rewrite/split_plan.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

class Splitter {
 public:
  Splitter(const Graph& graph, const Module& root, const SplitOptions& options, SplitPlan plan)
      : graph_(graph), root_(root), options_(options), plan_(std::move(plan)), parts_(plan_.partitions.size()) {
    for (Part& part : parts_) part.graph = Graph::create();
  }

  SplitGraph run() {
    enter_states();
    for (size_t i : plan_.sorted) add_inputs(i);
    for (Node* n : graph_.nodes()) {
      if (plan_.of(n) != kNoPartition) move(n);
    }
    leave_states();
    build_outer();
    return std::move(result_);
  }

 private:
  struct Part {
    GraphPtr graph;
    std::unordered_map<const Node*, Node*> nodes;  // node of the graph → node of the part
    std::vector<Node*> inputs;                     // nodes that became placeholders
    TargetMap targets;
    std::unordered_set<std::string> known_targets;
  };

  ObjectRef attribute(const Node& n) const {
    ObjectRef value = find_attribute(root_, n.target_str());
    if (!value) throw AttributeError(concat("Node target ", n.target_str(), " not found! (node ", n.name(), ")"));
    return value;
  }

  static void add_target(Part& part, std::string name, std::string_view path) {
    if (part.known_targets.insert(name).second) part.targets.emplace_back(std::move(name), path);
  }

  // Partitions behind the first one of a region switch the state themselves.
  void enter_states() {
    for (const auto* regions : {&plan_.autocast, &plan_.grad}) {
      for (const StateRegion& region : *regions) {
        for (const auto& [number, index] : region.where | std::views::drop(1)) {
          Part& part = parts_[index];
          Node* copy = part.graph->create_node(region.enter->op(), region.enter->target(), region.enter->args(), {}, {},
                                               region.enter->type());
          copy_meta(*region.enter, copy);
          part.nodes[region.enter] = copy;
        }
      }
    }
  }

  void leave_states() {
    for (const StateRegion& region : plan_.autocast | std::views::reverse) {
      for (const auto& [number, index] : region.where | std::views::take(region.where.size() - 1)) {
        Part& part = parts_[index];
        Node* copy =
            part.graph->create_node(region.exit->op(), region.exit->target(),
                                    Argument::tuple({part.nodes.at(region.enter)}), {}, {}, region.exit->type());
        copy_meta(*region.exit, copy);
      }
    }
  }

  void add_inputs(size_t i) {
    Part& part = parts_[i];
    for (Node* input : plan_.partitions[i].inputs.items) {
      Node* made = nullptr;
      if (input->op() == Opcode::GetAttr && attribute(*input)->object_kind() == ObjectKind::Module) {
        made = part.graph->get_attr(input->target_str());
        add_target(part, std::string(input->target_str()), input->target_str());
      } else {
        const std::string name =
            options_.keep_original_input_name ? std::string(input->name()) : concat("arg_", part.inputs.size());
        made = part.graph->placeholder(name, {}, input->type());
        part.inputs.push_back(input);
      }
      copy_meta(*input, made);
      part.nodes[input] = made;
    }
  }

  void move(Node* n) {
    Part& part = parts_[plan_.of(n)];
    const auto mapped = [&](Node* input) {
      const auto it = part.nodes.find(input);
      if (it == part.nodes.end()) throw KeyError(concat(input->name(), " as an argument of ", n->name()));
      return Argument(it->second);
    };
    Argument target = n->target();
    if (n->op() == Opcode::CallModule) {
      attribute(*n);
      std::string flat(n->target_str());
      std::ranges::replace(flat, '.', '_');
      add_target(part, flat, n->target_str());
      target = flat;
    }
    std::optional<std::string_view> name;
    if (options_.keep_original_node_name) name = n->name();
    Node* copy = part.graph->create_node(n->op(), std::move(target), map_arg(n->args(), mapped),
                                         map_arg(n->kwargs(), mapped), name, n->type());
    copy_meta(*n, copy);
    part.nodes[n] = copy;
  }

  // ---- the outer graph ----

  // Placeholders and attributes; other nodes come from the partitions.
  void add_outer(Node* n) {
    if (outer_.contains(n) || (n->op() != Opcode::Placeholder && n->op() != Opcode::GetAttr)) return;
    Node* made = nullptr;
    if (n->op() == Opcode::Placeholder) {
      const std::string_view target = options_.keep_original_node_name ? n->name() : n->target_str();
      made = result_.graph->create_node(Opcode::Placeholder, target, n->args(), {}, {}, n->type());
    } else {
      attribute(*n);
      made = result_.graph->get_attr(n->target_str());
      if (outer_targets_.insert(n->target_str()).second) {
        result_.targets.emplace_back(n->target_str(), n->target_str());
      }
    }
    copy_meta(*n, made);
    outer_[n] = made;
  }

  Node* outer(Node* n) {
    add_outer(n);
    const auto it = outer_.find(n);
    if (it != outer_.end()) return it->second;
    throw KeyError(concat(n->name(), " is used before the partition that computes it was called"));
  }

  void build_outer() {
    result_.graph = Graph::create();
    if (options_.keep_original_order && !parts_.empty()) {
      for (Node* n : graph_.nodes()) {
        if (n->op() == Opcode::Placeholder) add_outer(n);
      }
      for (size_t i = 0; i < parts_.size(); ++i) call(i);
    } else {
      for (Node* n : graph_.nodes()) add_outer(n);
      for (size_t i : plan_.sorted) call(i);
    }
    const Node* output = graph_.output_node();
    if (output) result_.graph->output(map_arg(output->arg(0), [&](Node* n) { return Argument(outer(n)); }));
  }

  void call(size_t i) {
    Part& part = parts_[i];
    const std::vector<Node*>& outputs = plan_.partitions[i].outputs.items;
    std::vector<Argument> values, args;
    for (Node* n : outputs) values.push_back(part.nodes.at(n));
    part.graph->output(values.size() == 1 ? values[0] : Argument::tuple(values));
    for (Node* n : part.inputs) args.push_back(outer(n));
    std::string name = concat("submod_", plan_.partitions[i].name);
    Node* made = result_.graph->call_module(name, Argument::tuple(args));
    if (outputs.size() == 1) outer_[outputs[0]] = made;
    for (size_t k = 0; outputs.size() > 1 && k < outputs.size(); ++k) {
      outer_[outputs[k]] =
          result_.graph->call_function(builtin_function("_operator.getitem"), Argument::tuple({made, k}));
    }
    result_.partitions.push_back({std::move(name), part.graph, std::move(part.targets)});
  }

  const Graph& graph_;
  const Module& root_;
  const SplitOptions& options_;
  SplitPlan plan_;
  std::vector<Part> parts_;
  std::unordered_map<const Node*, Node*> outer_;
  std::unordered_set<std::string_view> outer_targets_;
  SplitGraph result_;
};

ModuleRef take_attributes(const Module& from, const TargetMap& targets) {
  auto taken = make_ref<BasicModule>();
  for (const auto& [name, path] : targets) {
    if (find_attribute(*taken, name)) continue;  // within a module that was taken whole
    const ObjectRef value = find_attribute(from, path);
    if (!value) throw AttributeError(concat("Node target ", path, " not found!"));
    set_attribute_at(*taken, name, value, registered_kind(*value));
  }
  return taken;
}

}  // namespace

GraphModuleRef assemble_split(const GraphModule& module, const SplitGraph& split, TargetMap* qualname_map) {
  const ModuleRef root = take_attributes(module, split.targets);
  for (const SplitPartition& part : split.partitions) {
    const GraphModuleRef made = GraphModule::create(take_attributes(module, part.targets), part.graph);
    root->set_attribute(part.name, made, AttributeKind::Module);
    for (const auto& [name, path] : part.targets) {
      if (qualname_map) qualname_map->emplace_back(concat(part.name, ".", name), path);
    }
  }
  return GraphModule::create(root, split.graph);
}

SplitGraph split_graph(const Graph& graph, const Module& root, FunctionRef<Argument(Node*)> callback,
                       const SplitOptions& options) {
  return Splitter(graph, root, options, plan_split(graph, callback, options)).run();
}

GraphModuleRef split_module(const GraphModule& module, FunctionRef<Argument(Node*)> callback,
                            const SplitOptions& options, TargetMap* qualname_map) {
  return assemble_split(module, split_graph(module.graph(), module, callback, options), qualname_map);
}

}  // namespace fxjit::inline v0::fx
