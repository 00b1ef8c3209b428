#include <algorithm>

#include "fxjit/errors.h"
#include "fxjit/fx/transform.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

enum class Place : uint8_t { Outside, Inside, Behind };  // Behind: outside, and reads something inside

void check_convex(const Graph& graph, const std::vector<bool>& inside) {
  std::vector<Place> place(graph.created(), Place::Outside);
  for (const Node* n : graph.nodes()) {
    bool reads_inside = false;
    const Node* behind = nullptr;
    for (const Node* input : n->all_input_nodes()) {
      reads_inside |= place[input->id()] == Place::Inside;
      if (place[input->id()] == Place::Behind) behind = input;
    }
    if (inside[n->id()]) {
      if (behind) {
        throw ValueError(concat("extract_part: ", n->name(), " reads ", behind->name(),
                                ", which is outside of the part and depends on it"));
      }
      place[n->id()] = Place::Inside;
    } else if (reads_inside || behind) {
      place[n->id()] = Place::Behind;
    }
  }
}

}  // namespace

Part extract_part(GraphModule& module, std::span<Node* const> nodes) {
  Graph& graph = module.graph();
  std::vector<bool> inside(graph.created());
  for (const Node* n : nodes) {
    if (&n->graph() != &graph || n->erased())
      throw ValueError(concat("extract_part: ", n->name(), " is not in the graph"));
    if (n->op() == Opcode::Placeholder || n->op() == Opcode::Output) {
      throw ValueError(concat("extract_part: ", n->name(), " is an input or output of the graph"));
    }
    inside[n->id()] = true;
  }
  if (nodes.empty()) throw ValueError("extract_part: no nodes were given");
  check_convex(graph, inside);

  std::vector<Node*> sorted(nodes.begin(), nodes.end());
  std::sort(sorted.begin(), sorted.end(), [](const Node* a, const Node* b) { return *a < *b; });
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

  Part part;
  std::vector<bool> seen(graph.created());
  std::vector<Node*> attributes;
  for (Node* n : sorted) {
    for (Node* input : n->all_input_nodes()) {
      if (inside[input->id()] || seen[input->id()]) continue;
      seen[input->id()] = true;
      (input->op() == Opcode::GetAttr ? attributes : part.inputs).push_back(input);
    }
  }
  const auto in_order = [](const Node* a, const Node* b) { return *a < *b; };
  std::sort(part.inputs.begin(), part.inputs.end(), in_order);
  std::sort(attributes.begin(), attributes.end(), in_order);

  GraphPtr extracted = Graph::create();
  NodeMap copies;
  for (Node* n : part.inputs) {
    Node* copy = extracted->placeholder(n->name(), {}, n->type());
    if (n->meta_if_any()) copy->meta().copy_from(*n->meta_if_any());
    copies[n] = copy;
  }
  const auto mapped = [&](Node* n) { return copies.at(n); };
  for (Node* n : attributes) copies[n] = extracted->node_copy(*n);
  std::vector<Argument> results;
  for (Node* n : sorted) {
    copies[n] = extracted->node_copy(*n, mapped);
    bool read = n->num_users() == 0;
    for (const Node* user : n->users()) read |= !inside[user->id()];
    if (!read) continue;
    part.outputs.push_back(n);
    results.push_back(copies[n]);
  }
  extracted->output(Argument::tuple(results));
  part.module = GraphModule::create(ModuleRef(&module), std::move(extracted), module.class_name() + "Part");
  return part;
}

}  // namespace fxjit::inline v0::fx
