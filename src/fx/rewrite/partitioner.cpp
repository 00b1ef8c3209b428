#include "fxjit/fx/partitioner.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "fx/rewrite/group_graph.h"

namespace fxjit::inline v0::fx {

namespace {

constexpr std::string_view kGetItem = "_operator.getitem", kView = "torch.ops.aten.view";

std::vector<Partition> grow_groups(const Graph& graph, FunctionRef<bool(Node*)> is_supported) {
  GroupGraph groups(graph);
  // Whether groups that could not be merged may have become mergeable: only another merge does that.
  bool merged = false;
  for (Node* n : graph.nodes().reversed()) {
    const bool supported = is_supported(n);
    size_t self = kNoGroup;
    if (supported) {
      self = groups.add_group(n);
    } else {
      groups.add_single(n);
      if (!merged || groups.live().empty()) continue;
      self = groups.live().front();
    }
    bool any = false;
    const std::vector<size_t> others = groups.live();
    for (size_t other : others) {
      // Empty: it has become part of another one on the way.
      if (other == self || groups.group(other).nodes.empty() || !groups.can_merge(self, other)) continue;
      self = groups.merge(self, other);
      any = true;
    }
    merged = any || (supported && merged);
  }
  std::vector<Partition> partitions;
  for (size_t slot : groups.live()) partitions.push_back({groups.group(slot).id, std::move(groups.group(slot).nodes)});
  std::ranges::sort(partitions, {}, &Partition::id);
  for (Partition& p : partitions) std::ranges::sort(p.nodes, [](Node* a, Node* b) { return *a < *b; });
  return partitions;
}

bool feeds_getitem_only(const Node& n) {
  return std::ranges::all_of(n.users(), [](Node* user) {
    return user->op() == Opcode::CallFunction && user->callable().qualified_name() == kGetItem;
  });
}

// Brings getitem nodes to the nodes whose elements they take, again as long as that gives others something to do.
void bring_getitem_to_producers(const Graph& graph, std::vector<Partition>& partitions) {
  std::vector<size_t> of(graph.created(), kNoGroup);
  for (size_t i = 0; i < partitions.size(); ++i) {
    for (Node* n : partitions[i].nodes) of[n->id()] = i;
  }
  std::unordered_map<const Node*, size_t> moved;
  for (bool changed = true; changed;) {
    std::vector<std::pair<Node*, size_t>> moves;
    for (Node* n : graph.nodes()) {
      if (n->num_users() == 0 || !feeds_getitem_only(*n)) continue;
      for (Node* user : n->users()) {
        // An index that only getitem nodes read is no producer.
        if (user->args().size() == 0 || user->arg(0).node_or_null() != n) continue;
        if (of[user->id()] != of[n->id()]) moves.emplace_back(user, of[n->id()]);
      }
    }
    changed = !moves.empty();
    for (auto [n, to] : moves) {
      of[n->id()] = to;
      moved[n] = to;
      if (to != kNoGroup) partitions[to].nodes.push_back(n);
    }
  }
  if (moved.empty()) return;
  for (size_t i = 0; i < partitions.size(); ++i) {
    // Those that left, and all but the last place of one that came back.
    std::vector<Node*> kept;
    std::unordered_map<const Node*, size_t> seen;
    std::vector<Node*>& nodes = partitions[i].nodes;
    for (size_t at = nodes.size(); at-- > 0;) {
      if (of[nodes[at]->id()] == i && seen.emplace(nodes[at], at).second) kept.push_back(nodes[at]);
    }
    std::ranges::copy(kept.rbegin(), kept.rend(), (nodes.resize(kept.size()), nodes.begin()));
  }
}

bool is_function_of(const Node& n, const std::unordered_set<std::string>& names) {
  return n.op() == Opcode::CallFunction && names.contains(std::string(n.callable().qualified_name()));
}

bool is_trivial(const Partition& p, const PartitionerOptions& options) {
  size_t computing = 0;
  for (Node* n : p.nodes) {
    if (n->op() != Opcode::CallFunction) continue;
    const std::string_view name = n->callable().qualified_name();
    computing += name != kGetItem && name != kView && !is_function_of(*n, options.non_compute_ops);
    computing += is_function_of(*n, options.allowed_single_node_partition_ops);
  }
  return computing <= 1;
}

}  // namespace

std::vector<Partition> propose_partitions(const Graph& graph, FunctionRef<bool(Node*)> is_supported,
                                          const PartitionerOptions& options) {
  std::vector<Partition> partitions = grow_groups(graph, is_supported);
  bring_getitem_to_producers(graph, partitions);
  std::erase_if(partitions, [&](const Partition& p) {
    return p.nodes.empty() || (!options.allows_single_node_partition && is_trivial(p, options));
  });
  return partitions;
}

std::vector<Node*> bookend_non_compute_nodes(const std::vector<Node*>& partition,
                                             const std::unordered_set<std::string>& non_compute_ops) {
  std::vector<Node*> sorted = partition;
  std::ranges::sort(sorted, [](Node* a, Node* b) { return *a < *b; });
  std::unordered_map<const Node*, bool> leading, trailing;  // false: something is computed there
  for (Node* n : sorted) {
    leading[n] = is_function_of(*n, non_compute_ops) && std::ranges::all_of(n->all_input_nodes(), [&](Node* input) {
                   const auto it = leading.find(input);
                   return it == leading.end() || it->second;
                 });
  }
  for (auto it = sorted.rbegin(); it != sorted.rend(); ++it) {
    Node* n = *it;
    trailing[n] = is_function_of(*n, non_compute_ops) && std::ranges::all_of(n->users(), [&](Node* user) {
                    const auto found = trailing.find(user);
                    return found == trailing.end() || found->second;
                  });
  }
  std::vector<Node*> ends;
  std::ranges::copy_if(partition, std::back_inserter(ends), [&](Node* n) { return leading[n] || trailing[n]; });
  return ends;
}

std::vector<Partition> CapabilityBasedPartitioner::propose_partitions() const {
  return fx::propose_partitions(module_->graph(), [&](Node* n) { return is_supported_(n); }, options_);
}

GraphModuleRef CapabilityBasedPartitioner::fuse_partitions(const std::vector<Partition>& partitions,
                                                           std::string_view prefix) const {
  std::vector<std::vector<Node*>> groups;
  for (const Partition& p : partitions) groups.push_back(p.nodes);
  fuse_by_partitions(*module_, groups, prefix);
  return module_;
}

void CapabilityBasedPartitioner::remove_bookend_non_compute_ops(std::vector<Partition>& partitions) const {
  for (Partition& p : partitions) {
    const std::vector<Node*> ends = bookend_non_compute_nodes(p.nodes, options_.non_compute_ops);
    const std::unordered_set<const Node*> gone(ends.begin(), ends.end());
    std::erase_if(p.nodes, [&](Node* n) { return gone.contains(n); });
  }
}

GraphModuleRef CapabilityBasedPartitioner::partition_and_fuse(std::string_view prefix) const {
  return fuse_partitions(propose_partitions(), prefix);
}

}  // namespace fxjit::inline v0::fx
