// From runs of a program to its graph.
#pragma once

#include <string_view>
#include <unordered_map>

#include "driver/record/example_run.h"
#include "fxjit/fx/graph_module.h"
#include "fxjit/record.h"

namespace fxjit::inline v0::driver {

struct RecordedGraph {
  fx::GraphPtr graph;
  fx::ModuleRef root;  // the attributes that the graph uses
  // What was seen of the tensors that nodes make, at the first example.
  std::unordered_map<const fx::Node*, torch_::TensorInfo> info;

  const torch_::TensorInfo* info_of(const fx::Argument& a) const {
    const auto it = info.find(a.node_or_null());
    return it == info.end() ? nullptr : &it->second;
  }
};

// Nodes as the program called: operators with their arguments in order, those that equal the schema's default left out;
// get_attr at the first use of an attribute. With a second run, integers that differ are computed from sizes. Errors as
// fxjit::record.
RecordedGraph build_recorded_graph(const ExampleRun& run, const ExampleRun* other, const detail::ModuleTree* tree,
                                   const RecordOptions& options);

// Whether `n` calls the ATen operator of this name ("aten::addmm").
bool calls(const fx::Node& n, std::string_view op);
// The node in `a` if it calls `op` and nobody but one node uses it; else null.
fx::Node* sole_use(const fx::Argument& a, std::string_view op);

// `t` with `addmm` or `matmul` → aten::linear.
void recognise_linear(RecordedGraph& g);
// matmul(softmax(matmul(q, kᵀ)), v) → aten::scaled_dot_product_attention.
void recognise_attention(RecordedGraph& g, bool masked);

// The stretch of nodes between the first and the last use of each leaf's attributes becomes one call_module node of a
// GraphModule that holds them. TraceError where that would mix modules.
void fold_leaves(RecordedGraph& g, const detail::ModuleTree& tree, const RecordOptions& options);

}  // namespace fxjit::inline v0::driver
