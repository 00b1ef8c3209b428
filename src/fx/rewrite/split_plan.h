// Which node goes into which partition, and what the partitions exchange.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fxjit/fx/split_module.h"

namespace fxjit::inline v0::fx {

// Nodes or partitions in the order in which they were added.
template <class T>
struct OrderedSet {
  std::vector<T> items;
  std::unordered_map<T, bool> known;
  void add(T item) {
    if (known.emplace(item, true).second) items.push_back(item);
  }
};

struct PlannedPartition {
  Argument id;
  std::string name;
  OrderedSet<Node*> inputs, outputs;
  OrderedSet<size_t> dependencies, dependents;
};

// A node that switches a state which holds for the nodes behind it, and the partitions in which it holds.
struct StateRegion {
  Node* enter;
  Node* exit = nullptr;             // autocast only
  std::map<int64_t, size_t> where;  // number of the partition → its index
};

inline constexpr size_t kNoPartition = static_cast<size_t>(-1);

struct SplitPlan {
  std::vector<PlannedPartition> partitions;  // in the order of their first nodes
  std::vector<size_t> partition_of;          // by id of the node
  std::vector<size_t> sorted;                // topological order of the partitions
  std::vector<StateRegion> autocast, grad;

  size_t of(const Node* n) const { return partition_of[n->id()]; }
};

SplitPlan plan_split(const Graph& graph, FunctionRef<Argument(Node*)> callback, const SplitOptions& options);

}  // namespace fxjit::inline v0::fx
