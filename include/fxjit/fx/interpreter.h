// Runs a graph node by node over values: the oracle for compiled code, and what records the first call.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fxjit/fx/graph.h"
#include "fxjit/fx/graph_module.h"
#include "fxjit/fx/module.h"

namespace fxjit::inline v0::fx {

// What methods and functions mean for the values of another floor.
class FXJIT_API OperatorResolver {
 public:
  virtual ~OperatorResolver();
  // Empty: there is no such method on this value (args[0]).
  virtual std::optional<Value> call_method(std::string_view name, std::span<const Value> args, const Value& kwargs) = 0;
  // Asked before Callable::call; empty: that shall run.
  virtual std::optional<Value> call_function(const Callable& f, std::span<const Value> args, const Value& kwargs);
};

// Registered once, at load time, by the floor whose values they are: what an Interpreter without a resolver of its own
// asks. Not owned.
FXJIT_API void register_operator_resolver(OperatorResolver* resolver);

class FXJIT_API Interpreter {
 public:
  // Neither is owned. `module` resolves get_attr and call_module and may be null. Without `resolver` the registered one
  // serves: methods of tensors work wherever tensors do. Values are freed after their last use unless `free_values` is
  // false.
  Interpreter(Module* module, const Graph& graph, OperatorResolver* resolver = nullptr, bool free_values = true);
  explicit Interpreter(GraphModule& module, OperatorResolver* resolver = nullptr, bool free_values = true);
  virtual ~Interpreter();

  // Binds positional and keyword arguments to the placeholders (RuntimeError for missing, TypeError for extra or
  // unknown ones) and runs to the output. Values that were set before with set_value are not computed again. An error
  // is rethrown with "While executing <node>" appended.
  Value run(std::span<const Value> args, const Value& kwargs = {});
  Value run(std::initializer_list<Value> args) { return run(std::span(args.begin(), args.size())); }
  // A value known beforehand, for partial evaluation; taken by the next run.
  void set_value(const Node& n, Value v);
  // The value of a node of the last run, if it was kept.
  const Value* value(const Node& n) const;

  virtual Value run_node(const Node& n);
  virtual Value placeholder(const Argument& target, std::span<const Value> args, const Value& kwargs);
  virtual Value get_attr(const Argument& target, std::span<const Value> args, const Value& kwargs);
  virtual Value call_function(const Argument& target, std::span<const Value> args, const Value& kwargs);
  virtual Value call_method(const Argument& target, std::span<const Value> args, const Value& kwargs);
  virtual Value call_module(const Argument& target, std::span<const Value> args, const Value& kwargs);
  virtual Value output(const Argument& target, std::span<const Value> args, const Value& kwargs);

  const Graph& graph() const { return graph_; }
  const Node& current_node() const { return *current_; }

 protected:
  // Called in a catch block with the note "While executing …"; must throw. By default an fxjit::Error gets the note
  // appended and keeps its class; another exception is nested in a RuntimeError.
  [[noreturn]] virtual void annotate_error(const Node& n, const std::string& note);
  Value load(const Argument& a);  // nodes replaced by their values

 private:
  void find_last_uses();

  Module* module_;
  std::shared_ptr<const Graph> keep_;
  const Graph& graph_;
  OperatorResolver* resolver_;
  const Node* current_ = nullptr;
  // By node id.
  std::vector<std::optional<Value>> env_, preset_, bound_;
  std::vector<uint32_t> last_user_;
  bool free_values_;
};

}  // namespace fxjit::inline v0::fx
