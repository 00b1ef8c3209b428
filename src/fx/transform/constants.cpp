#include "fx/transform/effects.h"
#include "fxjit/fx/transform.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

namespace {

bool read_by_others(const Node& n, const std::vector<bool>& constant) {
  for (const Node* user : n.users()) {
    if (!constant[user->id()]) return true;
  }
  return false;
}

// Whether anything in the graph may write to attributes: then they are no constants.
bool writes(const Graph& graph) {
  for (const Node* n : graph.nodes()) {
    if (may_write(*n)) return true;
  }
  return false;
}

void replace_by_attribute(GraphModule& module, Node* n, const std::string& name, const Value& value) {
  Graph& graph = module.graph();
  const ObjectRef object(&value.as_object());
  module.set_attribute(name, object, AttributeKind::Buffer);
  const InsertScope scope = graph.inserting_before(n);
  Node* folded = graph.get_attr(name, n->type());
  if (n->meta_if_any()) folded->meta().copy_from(*n->meta_if_any());
  n->replace_all_uses_with(folded);
}

}  // namespace

std::vector<Node*> constant_nodes(const Graph& graph, FunctionRef<bool(const Node&)> skip) {
  std::vector<Node*> out;
  if (writes(graph)) return out;
  std::vector<bool> constant(graph.created());
  for (Node* n : graph.nodes()) {
    bool is = n->op() == Opcode::GetAttr || is_reproducible_call(*n);
    for (const Node* input : n->all_input_nodes()) is = is && constant[input->id()];
    constant[n->id()] = is && !(skip && skip(*n));
  }
  // Attributes that only other calls read are no part of it.
  for (Node* n : graph.nodes()) {
    if (!constant[n->id()]) continue;
    bool wanted = n->op() != Opcode::GetAttr;
    for (const Node* user : n->users()) wanted = wanted || constant[user->id()];
    if (wanted) out.push_back(n);
  }
  return out;
}

size_t fold_constants(GraphModule& module, OperatorResolver* resolver, FunctionRef<bool(const Node&)> skip) {
  Graph& graph = module.graph();
  const std::vector<Node*> nodes = constant_nodes(graph, skip);
  std::vector<bool> constant(graph.created());
  for (const Node* n : nodes) constant[n->id()] = true;

  // A graph of the constants alone; its values by their place in `read`.
  Graph part;
  NodeMap copies;
  std::vector<Node*> read;
  std::vector<Argument> results;
  for (Node* n : nodes) {
    copies[n] = part.node_copy(*n, [&](Node* input) { return copies.at(input); });
    if (n->op() == Opcode::GetAttr || !read_by_others(*n, constant)) continue;
    read.push_back(n);
    results.push_back(copies[n]);
  }
  if (read.empty()) return 0;
  part.output(Argument::tuple(results));
  const Value values = Interpreter(&module, part, resolver).run(std::span<const Value>());

  size_t made = 0;
  for (size_t i = 0; i < read.size(); ++i) {
    const Value& value = values[i];
    if (value.is_object()) {
      std::string name;
      do name = support::concat("_folded_constant_", made++);
      while (module.attribute(name));
      replace_by_attribute(module, read[i], name, value);
    } else if (!value.contains_object()) {
      read[i]->replace_all_uses_with(value);
    }
  }
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    if ((*it)->num_users() == 0) graph.erase_node(*it);
  }
  module.recompile();
  return made;
}

}  // namespace fxjit::inline v0::fx
