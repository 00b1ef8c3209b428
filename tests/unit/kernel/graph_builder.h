// Typed graphs for tests, and their lowered kernels run by the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fxjit/fx/graph.h"
#include "kernel/lower/lower.h"
#include "ops/aten_target.h"
#include "ops/infer.h"
#include "ops/value.h"

namespace fxjit::testing {

using fx::Argument;
using fx::Node;
using kernel::Lowered;

class TypedGraph {
 public:
  ShapeEnv env;
  fx::GraphPtr graph = fx::Graph::create();
  std::vector<Node*> group;  // every call made so far

  std::vector<Dim> dims(const std::vector<int64_t>& values) {
    std::vector<Dim> out;
    for (int64_t v : values) out.push_back(env.constant(v));
    return out;
  }

  // An input with constant sizes, contiguous unless strides are given.
  Node* input(DType t, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides = {}) {
    const std::vector<Dim> s = dims(sizes);
    return input_as(t, s, strides.empty() ? contiguous_strides(env, s) : dims(strides));
  }

  // An input whose sizes are symbols, contiguous.
  Node* symbolic(DType t, const std::vector<int64_t>& hints) {
    std::vector<Dim> s;
    for (size_t d = 0; d < hints.size(); ++d)
      s.push_back(env.symbol({SymSource::Size, inputs_, static_cast<int32_t>(d)}, hints[d]));
    return input_as(t, s, contiguous_strides(env, s));
  }

  Node* input_as(DType t, std::vector<Dim> sizes, std::vector<Dim> strides) {
    Node* n = graph->placeholder("x" + std::to_string(inputs_++));
    auto type = std::make_shared<TensorType>();
    type->dtype = t;
    type->sizes = std::move(sizes);
    type->strides = std::move(strides);
    n->set_tensor_type(type);
    return n;
  }

  Node* call(const char* schema, std::vector<Argument> args) {
    Node* n = graph->call_function(fx::make_ref<ops::AtenTarget>(schema), Argument::tuple(args));
    auto type = ops::infer_type(env, *n);
    EXPECT_TRUE(type.ok()) << schema << ": " << (type.ok() ? "" : type.reason());
    if (type.ok()) n->set_tensor_type(*type);
    group.push_back(n);
    return n;
  }

  // Lowers the calls that the outputs need.
  Result<Lowered> lower(std::vector<Node*> outputs) {
    std::set<Node*> needed(outputs.begin(), outputs.end());
    std::vector<Node*> nodes;
    for (size_t i = group.size(); i-- > 0;) {
      if (!needed.contains(group[i])) continue;
      nodes.insert(nodes.begin(), group[i]);
      for (Node* input : group[i]->all_input_nodes()) needed.insert(input);
    }
    return kernel::lower_group(env, nodes, outputs);
  }
  std::string reason(std::vector<Node*> outputs) {
    Result<Lowered> r = lower(std::move(outputs));
    return r ? "lowered" : r.reason();
  }
  // Only the expressions and stores, or the reason of the failure.
  std::string text(std::vector<Node*> outputs) {
    Result<Lowered> r = lower(std::move(outputs));
    if (!r) return r.reason();
    return kernel::print(r->kernel);
  }

 private:
  int32_t inputs_ = 0;
};

// Memory for the tensors of a launch: what inputs hold is set by element number in memory.
class Launch {
 public:
  Launch(const ShapeEnv& env, const Lowered& l) : env_(env), l_(l) {}

  // `memory` holds elements of the node's type from its data pointer on.
  template <class T>
  void bind(const Node* node, std::vector<T>& memory) {
    data_[node] = memory.data();
  }

  void run() {
    std::vector<void*> pointers;
    std::vector<int64_t> extents, strides;
    std::vector<uint64_t> scalars;
    for (size_t i = 0; i < l_.buffers.size(); ++i) {
      const kernel::BufferSource& b = l_.buffers[i];
      ASSERT_TRUE(data_.count(b.node)) << b.node->name();
      const size_t bytes = size_of(l_.kernel.buffers[i].dtype);
      pointers.push_back(static_cast<char*>(data_[b.node]) + env_.hint(b.offset) * static_cast<int64_t>(bytes));
      for (Dim s : b.strides) strides.push_back(env_.hint(s));
    }
    for (Dim e : l_.extents) extents.push_back(env_.hint(e));
    for (const kernel::ScalarSource& s : l_.scalars) scalars.push_back(s.bits);
    kernel::interpret(l_.kernel, pointers.data(), extents.data(), strides.data(), scalars.data());
  }

 private:
  const ShapeEnv& env_;
  const Lowered& l_;
  std::map<const Node*, void*> data_;
};

inline std::vector<float> iota(size_t n, float from = 0) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = from + static_cast<float>(i);
  return out;
}

}  // namespace fxjit::testing
