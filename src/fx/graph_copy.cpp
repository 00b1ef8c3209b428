#include "fx/node_store.h"
#include "fxjit/fx/graph.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

Node* Graph::node_copy(const Node& n, FunctionRef<Argument(Node*)> arg_transform) {
  Argument args = arg_transform ? map_arg(n.args_, arg_transform) : n.args_;
  Argument kwargs = arg_transform ? map_arg(n.kwargs_, arg_transform) : n.kwargs_;
  Node* copy = create_node(n.op_, n.target_, std::move(args), std::move(kwargs), n.name(), n.type_);
  if (n.meta_) copy->meta().copy_from(*n.meta_);
  copy->tensor_type_ = n.tensor_type_;
  return copy;
}

std::optional<Argument> Graph::graph_copy(const Graph& g, NodeMap& val_map, const Node** output_node) {
  const auto mapped = [&](Node* n) {
    const auto it = val_map.find(n);
    if (it == val_map.end()) throw KeyError(std::string(n->name()));
    return it->second;
  };
  const size_t created = g.created();  // what comes into the same graph meanwhile is not copied
  for (Node* n : g.nodes()) {
    if (n->id() >= created || val_map.contains(n)) continue;
    if (n->op() == Opcode::Output) {
      if (output_node) *output_node = n;
      return map_arg(n->arg(0), mapped);
    }
    val_map.emplace(n, node_copy(*n, mapped));
  }
  return std::nullopt;
}

GraphPtr Graph::copy(NodeMap* val_map) const {
  GraphPtr result = create();
  result->extension_ = extension_;
  std::vector<Node*> copies(store_->nodes.size());  // by id
  const auto mapped = [&](Node* n) {
    Node* copied = n->graph_ == this ? copies[n->id_] : n;
    if (!copied) throw KeyError(std::string(n->name()));
    return Argument(copied);
  };
  for (Node* n : nodes()) {
    copies[n->id_] = result->node_copy(*n, mapped);
    if (val_map) val_map->insert_or_assign(n, copies[n->id_]);
  }
  return result;
}

}  // namespace fxjit::inline v0::fx
