// What a call of a graph depends on: tensors, constants that are part of the key, attributes that are read.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "fxjit/fx/graph_module.h"

namespace fxjit::inline v0::driver {

// The bound values of a call, taken apart.
struct GraphArguments {
  fx::Value key;  // a Tuple of the values with a mark in place of each tensor
  std::vector<at::Tensor> tensors;
  bool plain = true;    // nothing but tensors
  std::string problem;  // why such a call cannot be specialised
};
GraphArguments take_apart(std::span<const fx::Value> bound);

// The tensors that the graph may read from the module, each once, and the modules they were found in.
struct GraphAttributes {
  std::vector<std::string> paths;
  std::vector<at::Tensor> tensors;
  struct Owner {
    fx::ModuleRef module;
    uint64_t version;
  };
  std::vector<Owner> owners;
  // Versions of the torch::nn modules that are called: another version may be another program.
  std::vector<uint64_t> programs;
  bool always_look = false;  // some owner cannot tell whether it changed

  bool same_program(const GraphAttributes& o) const { return paths == o.paths && programs == o.programs; }

  // Whether nothing was set or deleted on the way since.
  bool current() const {
    if (always_look) return false;
    for (const Owner& o : owners)
      if (o.module->attributes_version() != o.version) return false;
    return true;
  }
};
GraphAttributes read_attributes(const fx::GraphModule& root, const fx::Graph& graph);

// The result of a run as what a Recording wants: tensors, and the structure with their indices. Empty problem if all
// leaves can be kept.
struct GraphResult {
  std::vector<at::Tensor> tensors;
  fx::Value structure;
  std::string problem;
};
GraphResult take_result_apart(const fx::Value& result);

}  // namespace fxjit::inline v0::driver
