#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fx/rewrite/attributes.h"
#include "fxjit/fx/partitioner.h"
#include "fxjit/fx/topology.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

Subgraph extract_subgraph(const std::vector<Node*>& nodes, bool always_return_tuple) {
  Subgraph made{Graph::create(), {}, {}};
  const std::unordered_set<const Node*> inside(nodes.begin(), nodes.end());
  std::unordered_map<const Node*, Node*> copies;
  const auto mapped = [&](Node* n) {
    const auto it = copies.find(n);
    if (it != copies.end()) return Argument(it->second);
    if (inside.contains(n)) throw AssertionError(concat("nodes are not in topological order: ", n->name()));
    Node* placeholder = made.graph->placeholder(n->name(), {}, n->type());
    if (const NodeMeta* meta = n->meta_if_any()) placeholder->meta().copy_from(*meta);
    placeholder->set_tensor_type(n->tensor_type());
    made.inputs.push_back(n);
    copies.emplace(n, placeholder);
    return Argument(placeholder);
  };
  for (Node* n : nodes) copies.insert_or_assign(n, made.graph->node_copy(*n, mapped));
  std::vector<Argument> values;
  for (Node* n : nodes) {
    if (std::ranges::all_of(n->users(), [&](Node* user) { return inside.contains(user); })) continue;
    made.outputs.push_back(n);
    values.push_back(copies.at(n));
  }
  made.graph->output(values.size() == 1 && !always_return_tuple ? values[0] : Argument::tuple(values));
  made.graph->lint();
  return made;
}

Node* insert_subgraph_call(Graph& graph, std::string_view name, const std::vector<Node*>& inputs,
                           const std::vector<Node*>& outputs, bool as_tuple) {
  if (outputs.empty()) throw AssertionError("a submodule whose values nobody uses has no place in the graph");
  Node* last = *std::ranges::max_element(outputs, [](Node* a, Node* b) { return *a < *b; });
  const std::vector<Argument> args(inputs.begin(), inputs.end());
  InsertScope scope = graph.inserting_before(last->next());
  Node* call = graph.call_module(name, Argument::tuple(args));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Node* value =
        as_tuple ? graph.call_function(builtin_function("_operator.getitem"), Argument::tuple({call, i})) : call;
    outputs[i]->replace_all_uses_with(value, {}, true);
  }
  return call;
}

void fuse_by_partitions(GraphModule& module, const std::vector<std::vector<Node*>>& partitions, std::string_view prefix,
                        bool always_return_tuple) {
  Graph& graph = module.graph();
  if (!validate_partitions(graph, partitions)) throw AssertionError("Invalid partition, found dependency cycles");
  for (size_t i = 0; i < partitions.size(); ++i) {
    const std::vector<Node*> nodes = topo_sort(partitions[i]);
    Subgraph part = extract_subgraph(nodes, always_return_tuple);
    const std::string name = concat(prefix, i);
    const bool as_tuple = always_return_tuple || part.outputs.size() != 1;
    module.add_submodule(name, GraphModule::create(ModuleRef(&module), part.graph, name));
    insert_subgraph_call(graph, name, part.inputs, part.outputs, as_tuple);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) graph.erase_node(*it);
  }
  stable_topological_sort(graph);
  graph.lint();
  module.recompile();
}

}  // namespace fxjit::inline v0::fx
