// Partitions of what a backend supports, and their fusion into submodules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "fxjit/fx/graph_module.h"

namespace fxjit::inline v0::fx {

struct Partition {
  size_t id = 0;
  std::vector<Node*> nodes{};  // in program order; getitem nodes that were brought to their producers come last
};

struct PartitionerOptions {
  bool allows_single_node_partition = false;  // otherwise partitions of one computing call_function are dropped
  // Qualified names of functions: those that compute nothing, beside aten.view and getitem, and those that are worth a
  // partition of their own.
  std::unordered_set<std::string> non_compute_ops = {}, allowed_single_node_partition_ops = {};
};

// Groups supported nodes as far as no cycle arises between the groups, by torch.fx's greedy order: from the last node
// to the first, each one is offered to the existing groups, and grown groups to each other. Nodes of one group need not
// be connected. getitem nodes go to their producers. Time and memory: nodes times groups bits, and linear otherwise.
FXJIT_API std::vector<Partition> propose_partitions(const Graph& graph, FunctionRef<bool(Node*)> is_supported,
                                                    const PartitionerOptions& options = {});

// Those nodes of a partition that compute nothing and stand before or behind all nodes that do.
FXJIT_API std::vector<Node*> bookend_non_compute_nodes(const std::vector<Node*>& partition,
                                                       const std::unordered_set<std::string>& non_compute_ops);

// A copy of some nodes as a graph of their own.
struct Subgraph {
  GraphPtr graph;
  std::vector<Node*> inputs;   // outside values that it reads: its placeholders, in order
  std::vector<Node*> outputs;  // of the nodes those that are used outside
};

// `nodes` in topological order. One output is returned as it is unless `always_return_tuple`.
FXJIT_API Subgraph extract_subgraph(const std::vector<Node*>& nodes, bool always_return_tuple = false);
// Puts a call of the module `name`, which computes `outputs` of `inputs`, behind the last of the outputs, and makes it
// stand for these. Meta of an output goes to what replaces it. Returns the call.
FXJIT_API Node* insert_subgraph_call(Graph& graph, std::string_view name, const std::vector<Node*>& inputs,
                                     const std::vector<Node*>& outputs, bool as_tuple);

// Replaces each partition by a call of a new submodule <prefix><index>, sorts, lints and recompiles. AssertionError if
// cycles would arise.
FXJIT_API void fuse_by_partitions(GraphModule& module, const std::vector<std::vector<Node*>>& partitions,
                                  std::string_view prefix = "fused_", bool always_return_tuple = false);

class FXJIT_API CapabilityBasedPartitioner {
 public:
  CapabilityBasedPartitioner(GraphModuleRef module, std::function<bool(Node*)> is_supported,
                             PartitionerOptions options = {})
      : module_(std::move(module)), is_supported_(std::move(is_supported)), options_(std::move(options)) {}

  std::vector<Partition> propose_partitions() const;
  // Returns the module that was given, changed.
  GraphModuleRef fuse_partitions(const std::vector<Partition>& partitions, std::string_view prefix = "fused_") const;
  void remove_bookend_non_compute_ops(std::vector<Partition>& partitions) const;
  GraphModuleRef partition_and_fuse(std::string_view prefix = "fused_") const;

 private:
  GraphModuleRef module_;
  std::function<bool(Node*)> is_supported_;
  PartitionerOptions options_;
};

}  // namespace fxjit::inline v0::fx
