#include <string>
#include <unordered_set>

#include "fx/printer.h"
#include "fxjit/fx/graph.h"
#include "fxjit/fx/graph_module.h"
#include "fxjit/fx/module.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

// "Argument 'x' of Node 'y' …": order labels make the check constant time for each edge.
void check_input(const Graph& graph, const Node* input, const Node* n) {
  if (&input->graph() != &graph) {
    throw RuntimeError(concat("Argument '", input->name(), "' of Node '", n->name(),
                              "' does not belong to this Graph, but was used as an argument! If you are copying nodes "
                              "from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n",
                              graph.to_string()));
  }
  if (input->erased() || !(*input < *n)) {
    throw RuntimeError(concat("Argument '", input->name(), "' of Node '", n->name(),
                              "' was used before it has been defined! Please check that Nodes in the graph are "
                              "topologically ordered\n",
                              graph.to_string()));
  }
}

void check_target(const Node* n) {
  const bool callable = n->target().is_object() && n->target().as_object().object_kind() == ObjectKind::Callable;
  const bool wants_callable = n->op() == Opcode::CallFunction;
  if (wants_callable ? callable : n->target().is_str()) return;
  throw ValueError(concat("Node ", n->name(), " target ", target_text(n->target()), " has type ",
                          n->target().type_name(), " but a ", wants_callable ? "Callable" : "str", " is expected"));
}

}  // namespace

void Graph::check_module_targets(const Module& module) const {
  for (Node* n : nodes()) {
    if (n->op() != Opcode::GetAttr && n->op() != Opcode::CallModule) continue;
    const Module* at = &module;
    ObjectRef keep;
    std::string seen;
    for (std::string_view atom : support::split(n->target_str(), '.')) {
      ObjectRef next = at ? at->attribute(atom) : nullptr;
      if (!next) {
        throw RuntimeError(concat("Node ", n->name(), " target ", n->target_str(), " references nonexistent attribute ",
                                  atom, " of ", seen));
      }
      at = next->object_kind() == ObjectKind::Module ? dynamic_cast<const Module*>(next.get()) : nullptr;
      if (n->op() == Opcode::CallModule && !at) {
        throw RuntimeError(concat("Node ", n->name(), " target ", n->target_str(), " ", atom, " of ", seen,
                                  " does not reference an nn.Module"));
      }
      keep = std::move(next);
      seen += (seen.empty() ? "" : ".") + std::string(atom);
    }
  }
}

void Graph::lint(const Module* module) const {
  std::unordered_set<std::string_view> names;
  for (Node* n : nodes()) {
    ++work_.nodes;
    if (n->op_ == Opcode::Root) throw RuntimeError(concat("Node ", n->name(), " had unknown opcode root!"));
    if (n->graph_ != this) throw RuntimeError(concat("Node '", n->name(), "' does not belong to this Graph!"));
    for (Node* input : n->all_input_nodes()) check_input(*this, input, n);
    work_.uses += n->num_inputs_;
    // Names are unique as they are made: there is nothing to look for until one was assigned.
    if (names_may_repeat_ && !names.insert(n->name()).second) {
      throw RuntimeError(concat("Node redefined name ", n->name(), "!"));
    }
    check_target(n);
  }
  if (module) check_module_targets(*module);
}

bool Graph::eliminate_dead_code(FunctionRef<bool(const Node&)> is_impure, bool impure_random) {
  // Order is what the single reverse walk rests on: users of a node are seen, and gone, before it.
  lint();
  bool changed = false;
  for (Node* n : nodes().reversed()) {
    ++work_.nodes;
    if (n->num_users_ > 0 || (is_impure ? is_impure(*n) : n->is_impure(impure_random))) continue;
    erase_node(n);
    changed = true;
  }
  if (!owning_module_) return changed;
  for (Node* n : find_nodes(Opcode::GetAttr)) {
    const auto child = ref_cast<GraphModule>(find_attribute(*owning_module_, n->target_str()));
    if (child && child->graph().eliminate_dead_code(is_impure, impure_random)) {
      child->recompile();
      changed = true;
    }
  }
  return changed;
}

}  // namespace fxjit::inline v0::fx
