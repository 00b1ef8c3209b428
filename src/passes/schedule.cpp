#include "passes/schedule.h"

#include <functional>
#include <queue>

#include "kernel/kernel_call.h"
#include "passes/alias.h"
#include "support/errors.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Node;

class Scheduler {
 public:
  Scheduler(fx::Graph& graph, const Priorities& priorities)
      : graph_(graph), waiting_(graph.created(), 0), priority_(graph.created(), 0), after_(graph.created()) {
    int64_t place = 0;
    for (Node* n : graph_.nodes()) {
      auto it = priorities.find(n);
      priority_[n->id()] = it == priorities.end() ? place : it->second;
      nodes_.push_back(n);
      ++place;
    }
  }

  void precede(Node* first, Node* second) {
    after_[first->id()].push_back(second);
    ++waiting_[second->id()];
  }

  void run();

 private:
  using Entry = std::pair<std::pair<int64_t, uint32_t>, Node*>;

  fx::Graph& graph_;
  std::vector<Node*> nodes_;
  std::vector<int32_t> waiting_;
  std::vector<int64_t> priority_;
  std::vector<std::vector<Node*>> after_;
};

void Scheduler::run() {
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  auto push = [&](Node* n) { ready.push({{priority_[n->id()], n->id()}, n}); };
  for (Node* n : nodes_) {
    waiting_[n->id()] += static_cast<int32_t>(n->all_input_nodes().size());
    if (waiting_[n->id()] == 0) push(n);
  }
  Node* end = graph_.output_node();
  size_t placed = 0;
  while (!ready.empty()) {
    Node* n = ready.top().second;
    ready.pop();
    ++placed;
    if (n != end) end->prepend(n);
    auto release = [&](Node* next) {
      if (--waiting_[next->id()] == 0) push(next);
    };
    for (Node* user : n->users()) release(user);
    for (Node* next : after_[n->id()]) release(next);
  }
  FXJIT_CHECK(placed == nodes_.size(), "the graph has a cycle: ", placed, " of ", nodes_.size(),
              " nodes have an order");
}

}  // namespace

void reorder(fx::Graph& graph, const Priorities& priorities, const OrderEdges& edges) {
  Scheduler scheduler(graph, priorities);
  for (auto [first, second] : edges) scheduler.precede(first, second);
  Node* last = nullptr;
  std::vector<Node*> writes;
  for (Node* n : graph.nodes()) {
    if (is_call(*n, "aten::copy_")) {
      writes.push_back(n);
    } else if (!kernel::kernel_call_of(*n) &&
               effect_of(*n) != Effect::None) {  // kernels that write have edges of their own
      if (last) scheduler.precede(last, n);
      last = n;
    }
  }
  // One edge per node to the first copy_, and from one copy_ to the next.
  if (!writes.empty()) {
    for (Node* n : graph.nodes()) {
      if (n->op() == fx::Opcode::Output) {
        scheduler.precede(writes.back(), n);
      } else if (!is_call(*n, "aten::copy_")) {
        scheduler.precede(n, writes.front());
      }
    }
    for (size_t i = 1; i < writes.size(); ++i) scheduler.precede(writes[i - 1], writes[i]);
  }
  scheduler.run();
}

bool may_depend(const Node& to, const Node& from, const OrderEdges& edges, int budget) {
  std::vector<const Node*> work{&from};
  std::unordered_map<const Node*, bool> seen{{&from, true}};
  auto visit = [&](const Node* n) {
    if (!std::exchange(seen[n], true)) work.push_back(n);
  };
  while (!work.empty()) {
    const Node* n = work.back();
    work.pop_back();
    if (n == &to) return true;
    for (const Node* user : n->users()) {
      if (--budget < 0) return true;
      visit(user);
    }
    for (auto [first, second] : edges)
      if (first == n) visit(second);
  }
  return false;
}

}  // namespace fxjit::inline v0::passes
