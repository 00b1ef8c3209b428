#include "fxjit/fx/topology.h"

#include <deque>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "fx/rewrite/reachable.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

std::vector<Node*> topo_sort(std::span<Node* const> nodes) {
  std::unordered_map<const Node*, size_t> missing;  // inputs among `nodes` that have no place yet
  for (Node* n : nodes) missing.emplace(n, 0);
  std::vector<Node*> sorted;
  sorted.reserve(nodes.size());
  for (Node* n : nodes) {
    size_t& count = missing[n];
    for (Node* input : n->all_input_nodes()) count += missing.contains(input);
    if (count == 0) sorted.push_back(n);
  }
  for (size_t at = 0; at < sorted.size() && sorted.size() <= nodes.size(); ++at) {
    for (Node* user : sorted[at]->users()) {
      const auto it = missing.find(user);
      if (it != missing.end() && --it->second == 0) sorted.push_back(user);
    }
  }
  if (sorted.size() != nodes.size() || missing.size() != nodes.size()) {
    throw AssertionError("topological sorted nodes doesn't have same length as input nodes");
  }
  return sorted;
}

bool reenters(std::span<Node* const> nodes, const std::unordered_set<const Node*>& inside, const Node* last,
              uint64_t& steps) {
  std::vector<Node*> pending;
  std::unordered_set<const Node*> seen;
  const auto visit = [&](Node* user) {
    ++steps;
    // Past `last` no path comes back.
    if ((!last || *user < *last) && seen.insert(user).second) pending.push_back(user);
  };
  for (Node* n : nodes) {
    for (Node* user : n->users()) {
      if (!inside.contains(user)) visit(user);
    }
  }
  while (!pending.empty()) {
    Node* n = pending.back();
    pending.pop_back();
    for (Node* user : n->users()) {
      if (inside.contains(user)) return true;
      visit(user);
    }
  }
  return false;
}

bool validate_partition(std::span<Node* const> nodes) {
  uint64_t steps = 0;
  return !reenters(nodes, {nodes.begin(), nodes.end()}, nullptr, steps);
}

bool validate_partitions(const Graph& graph, std::span<const std::vector<Node*>> groups) {
  // Kahn's algorithm over groups and single nodes. Groups are numbered 1, 2, …; 0 is none.
  std::vector<size_t> group_of(graph.created()), missing(groups.size() + 1), node_missing(graph.created());
  for (size_t i = 0; i < groups.size(); ++i) {
    for (Node* n : groups[i]) group_of[n->id()] = i + 1;
  }
  const auto counter = [&](const Node* n) -> size_t& {
    const size_t group = group_of[n->id()];
    return group ? missing[group] : node_missing[n->id()];
  };
  size_t units = 0, done = 0;
  std::vector<Node*> ready;  // of a group its first node
  for (Node* n : graph.nodes()) {
    units += group_of[n->id()] == 0;
    for (Node* input : n->all_input_nodes()) {
      if (!group_of[n->id()] || group_of[input->id()] != group_of[n->id()]) ++counter(n);
    }
  }
  for (Node* n : graph.nodes()) {
    if (!group_of[n->id()] && !counter(n)) ready.push_back(n);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty()) continue;
    ++units;
    if (!missing[i + 1]) ready.push_back(groups[i].front());
  }
  for (; !ready.empty(); ++done) {
    Node* n = ready.back();
    ready.pop_back();
    const size_t group = group_of[n->id()];
    const auto release = [&](Node* m) {
      for (Node* user : m->users()) {
        const size_t other = group_of[user->id()];
        if (group && other == group) continue;
        if (--counter(user) == 0) ready.push_back(other ? groups[other - 1].front() : user);
      }
    };
    if (!group) {
      release(n);
      continue;
    }
    for (Node* m : groups[group - 1]) release(m);
  }
  return done == units;
}

bool is_topologically_sorted(const Graph& graph) {
  for (Node* n : graph.nodes()) {
    for (Node* input : n->all_input_nodes()) {
      if (!(*input < *n)) return false;
    }
  }
  return true;
}

namespace {

// Which inputs of each node, by id, have no place yet.
std::vector<uint32_t> input_counts(const Graph& graph) {
  std::vector<uint32_t> counts(graph.created());
  for (Node* n : graph.nodes()) counts[n->id()] = static_cast<uint32_t>(n->all_input_nodes().size());
  return counts;
}

std::string stuck_nodes(const Graph& graph, const std::vector<uint32_t>& missing) {
  std::string names;
  for (Node* n : graph.nodes()) {
    if (missing[n->id()]) names += concat(names.empty() ? "" : ", ", n->name());
  }
  return concat("Input graph has cycles, unable to add [", names, "]");
}

void put_in_order(Graph& graph, const std::vector<Node*>& order) {
  for (Node* n : order) graph.root()->prepend(n);  // before the sentinel: to the end
}

}  // namespace

void stable_topological_sort(Graph& graph) {
  if (is_topologically_sorted(graph)) return;
  std::vector<uint32_t> missing = input_counts(graph);
  const auto later = [](Node* a, Node* b) { return *b < *a; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (Node* n : graph.nodes()) {
    if (!missing[n->id()]) ready.push(n);
  }
  std::vector<Node*> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (Node* user : order.back()->users()) {
      if (--missing[user->id()] == 0) ready.push(user);
    }
  }
  if (order.size() != graph.size()) throw AssertionError(stuck_nodes(graph, missing));
  put_in_order(graph, order);
}

void legalize_graph(Graph& graph, FunctionRef<bool(const Node&)> urgent) {
  std::vector<uint32_t> missing = input_counts(graph);
  std::deque<Node*> ready;
  for (Node* n : graph.nodes()) {
    if (!missing[n->id()]) ready.push_back(n);
  }
  std::vector<Node*> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    order.push_back(ready.front());
    ready.pop_front();
    for (Node* user : order.back()->users()) {
      if (--missing[user->id()] != 0) continue;
      if (urgent && urgent(*user)) {
        ready.push_front(user);
      } else {
        ready.push_back(user);
      }
    }
  }
  if (order.size() != graph.size()) throw RuntimeError(stuck_nodes(graph, missing));
  put_in_order(graph, order);
}

}  // namespace fxjit::inline v0::fx
