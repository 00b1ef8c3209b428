// Makes nodes of a typed graph: ATen calls by schema name, each with the type that the ops floor infers for it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fxjit/fx/graph.h"
#include "fxjit/sym.h"
#include "fxjit/tensor_type.h"
#include "ops/aten_target.h"
#include "support/result.h"

namespace fxjit::inline v0::passes {

// A call_function target for `schema`; equal names may have several targets, which passes compare by name.
fx::CallableRef aten_target(std::string_view schema, bool mutates = false);

class TypedBuilder {
 public:
  // Both are borrowed. Nodes go to the graph's insert point.
  TypedBuilder(fx::Graph& graph, ShapeEnv& env) : graph_(graph), env_(env) {}

  // New nodes copy this node's meta (the user's line); null: none.
  void set_origin(const fx::Node* origin) { origin_ = origin; }

  // All arguments of the schema in order. InternalError where the ops floor has no rule or refuses: whoever rewrites
  // a graph has checked its operands before.
  fx::Node* call(std::string_view schema, std::vector<fx::Argument> args);
  // The same where a rule may be missing; the node is gone again on Failure.
  Result<fx::Node*> try_call(std::string_view schema, std::vector<fx::Argument> args);
  // A call whose type is known already; no rule is asked.
  fx::Node* call_as(std::string_view schema, std::vector<fx::Argument> args, TensorTypePtr type);

  // An operand may be a node or a number.
  fx::Node* add(fx::Argument a, fx::Argument b) { return call("aten::add.Tensor", {std::move(a), std::move(b), 1}); }
  fx::Node* sub(fx::Argument a, fx::Argument b) { return call("aten::sub.Tensor", {std::move(a), std::move(b), 1}); }
  fx::Node* mul(fx::Argument a, fx::Argument b) { return call("aten::mul.Tensor", {std::move(a), std::move(b)}); }
  fx::Node* div(fx::Argument a, fx::Argument b) { return call("aten::div.Tensor", {std::move(a), std::move(b)}); }
  fx::Node* exp(fx::Node* x) { return call("aten::exp", {x}); }
  fx::Node* log(fx::Node* x) { return call("aten::log", {x}); }
  fx::Node* rsqrt(fx::Node* x) { return call("aten::rsqrt", {x}); }
  fx::Node* reciprocal(fx::Node* x) { return call("aten::reciprocal", {x}); }
  // `x` itself where it has that type already.
  fx::Node* cast(fx::Node* x, DType to);
  // A copy of its own memory.
  fx::Node* clone(fx::Node* x, DType to);
  // Reductions over the last `dims` dimensions, which stay with size 1.
  fx::Node* amax(fx::Node* x, size_t dims) { return call("aten::amax", {x, last_dims(x, dims), true}); }
  fx::Node* sum(fx::Node* x, size_t dims) {
    return call("aten::sum.dim_IntList", {x, last_dims(x, dims), true, fx::Argument()});
  }
  fx::Node* mean(fx::Node* x, size_t dims) {
    return call("aten::mean.dim", {x, last_dims(x, dims), true, fx::Argument()});
  }
  fx::Node* unsqueeze(fx::Node* x, int64_t dim) { return call("aten::unsqueeze", {x, dim}); }

  fx::Graph& graph() { return graph_; }
  ShapeEnv& env() { return env_; }

 private:
  static fx::Argument last_dims(const fx::Node* x, size_t dims);

  fx::Graph& graph_;
  ShapeEnv& env_;
  const fx::Node* origin_ = nullptr;
  std::map<std::string, fx::CallableRef, std::less<>> targets_;
};

}  // namespace fxjit::inline v0::passes
