// Builds a new GraphModule by running an old one on nodes.
#pragma once

#include <string_view>

#include "fxjit/fx/interpreter.h"
#include "fxjit/fx/tracer.h"

namespace fxjit::inline v0::fx {

// Values are nodes of the new graph (or any structure of nodes and constants). The methods record what they are named
// after; derive and override those whose operations are to become others, and return what stands for the result.
// Proxies convert to values: `return Proxy(args[0].as_node(), tracer()).relu();`
class FXJIT_API Transformer : public Interpreter {
 public:
  explicit Transformer(GraphModule& module);
  ~Transformer() override;

  // The new module; it shares attributes with the old one. Nodes that were recorded for an old node get its meta, where
  // they have none. Call it once.
  GraphModuleRef transform();

  Value run_node(const Node& n) override;
  Value placeholder(const Argument& target, std::span<const Value> args, const Value& kwargs) override;
  Value get_attr(const Argument& target, std::span<const Value> args, const Value& kwargs) override;
  Value call_function(const Argument& target, std::span<const Value> args, const Value& kwargs) override;
  Value call_method(const Argument& target, std::span<const Value> args, const Value& kwargs) override;
  Value call_module(const Argument& target, std::span<const Value> args, const Value& kwargs) override;

 protected:
  Graph& new_graph() { return *graph_; }
  TracerBase& tracer() { return tracer_; }

 private:
  Value record(Opcode op, const Argument& target, std::span<const Value> args, const Value& kwargs);

  GraphModule& module_;
  GraphPtr graph_;
  GraphAppendingTracer tracer_;
};

}  // namespace fxjit::inline v0::fx
