// Splits a graph into submodules, as the user assigns its nodes to partitions or tags.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fxjit/fx/graph_module.h"

namespace fxjit::inline v0::fx {

struct SplitOptions {
  bool keep_original_order = false;  // call the submodules in the order in which the graph meets their first nodes
  bool keep_original_node_name = false;
  bool keep_original_input_name = true;  // otherwise inputs of submodules are arg_0, arg_1, …
  std::string partition_affix = {};      // "pp": submodules are called submod_pp_0, …
  // Nodes whose values a partition needs as well where it reads this one: symbols of its shape.
  std::function<std::vector<Node*>(Node*)> needs = {};
};

// Target in a submodule or in the outer graph → path in the module that was split.
using TargetMap = std::vector<std::pair<std::string, std::string>>;

struct SplitPartition {
  std::string name;  // of the submodule: "submod_0"
  GraphPtr graph;
  TargetMap targets;  // attributes that the graph uses
};

struct SplitGraph {
  GraphPtr graph;  // the outer graph: calls the submodules
  TargetMap targets;
  std::vector<SplitPartition> partitions;  // in the order of their calls
};

// `callback` gives the partition of each node but placeholders, get_attr nodes and the output: an int (or a str). It is
// called once for each node, in program order. Values that a partition reads of another become its inputs, in the order
// of first use; one output is returned as it is, several as a tuple. Switches of the gradient mode and of autocast are
// repeated in each partition in which they hold; the partitions' numbers must not decrease then. `root` holds the
// attributes. RuntimeError if the partitions depend on each other in a circle, AttributeError for a missing target.
// Linear in nodes and edges.
FXJIT_API SplitGraph split_graph(const Graph& graph, const Module& root, FunctionRef<Argument(Node*)> callback,
                                 const SplitOptions& options = {});

// The same as modules; attributes are shared with `module`. `qualname_map` gets new qualified names → old ones.
FXJIT_API GraphModuleRef split_module(const GraphModule& module, FunctionRef<Argument(Node*)> callback,
                                      const SplitOptions& options = {}, TargetMap* qualname_map = nullptr);

// One submodule per tag, of that name, called in the order of `tags`; a tag without nodes is an empty one. `tag_of`
// gives the tag of each node but placeholders, get_attr nodes and the output, and is called once for each, in program
// order. Attributes are read inside of the submodules, under the paths that they have in `module`, and shared with it.
// Submodules return their only value as it is, or in a tuple if `return_tuple`. KeyError for an unknown tag,
// AssertionError for a node that reads a value of a later tag, RuntimeError for a graph without output.
FXJIT_API GraphModuleRef split_by_tags(const GraphModule& module, std::span<const std::string> tags,
                                       FunctionRef<std::string(Node*)> tag_of, bool return_tuple = false,
                                       TargetMap* qualname_map = nullptr);

}  // namespace fxjit::inline v0::fx
