#include <unordered_map>

#include "fx/transform/effects.h"
#include "fxjit/fx/transform.h"

namespace fxjit::inline v0::fx {

namespace {

struct SameComputation {
  size_t operator()(const Node* n) const {
    size_t h = static_cast<size_t>(n->op());
    for (const Argument* a : {&n->target(), &n->args(), &n->kwargs()}) h = h * 1000003 ^ a->hash();
    return h;
  }
  bool operator()(const Node* a, const Node* b) const {
    return a->op() == b->op() && a->target() == b->target() && a->args() == b->args() && a->kwargs() == b->kwargs();
  }
};

}  // namespace

size_t eliminate_common_subexpressions(Graph& graph, FunctionRef<bool(const Node&)> banned) {
  const Node* last_write = nullptr;
  for (const Node* n : graph.nodes().reversed()) {
    if (!may_write(*n)) continue;
    last_write = n;
    break;
  }
  std::unordered_map<const Node*, Node*, SameComputation, SameComputation> first;
  size_t replaced = 0;
  bool open = last_write == nullptr;
  for (Node* n : graph.nodes()) {
    if (n == last_write) open = true;
    if (!open || !is_reproducible_call(*n) || (banned && banned(*n))) continue;
    // Users come later: what is in the table keeps its arguments.
    const auto [it, added] = first.emplace(n, n);
    if (added) continue;
    n->replace_all_uses_with(it->second);
    graph.erase_node(n);
    ++replaced;
  }
  return replaced;
}

}  // namespace fxjit::inline v0::fx
