// Tracers turn what happens to Proxies into nodes. Every step is a virtual function.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fxjit/fx/graph.h"
#include "fxjit/fx/module.h"
#include "fxjit/fx/proxy.h"

namespace fxjit::inline v0::fx {

using Target = Argument;  // a Str, or an Object that is a Callable

class FXJIT_API TracerBase {
 public:
  virtual ~TracerBase();

  Graph& graph() const { return *graph_; }

  // Lowers a value to an argument: nodes and constants stay, aggregates are lowered item by item, foreign objects are a
  // NotImplementedError "argument of type: …". RuntimeError if a Dict key contains a node.
  virtual Argument create_arg(const Argument& a);
  // The one place where nodes are made. `args` and `kwargs` are lowered already.
  virtual Node* create_node(Opcode op, const Target& target, Argument args, Argument kwargs,
                            std::optional<std::string_view> name = {}, Argument type = {});
  // Lowers the arguments, makes the node, wraps it.
  virtual Proxy create_proxy(Opcode op, const Target& target, Argument args, Argument kwargs = {},
                             std::optional<std::string_view> name = {}, Argument type = {});
  virtual Proxy proxy(Node* node) { return Proxy(node, *this); }

  // What Proxies do in control flow; TraceError by default, naming the node.
  virtual bool to_bool(const Proxy& p);
  virtual std::vector<Proxy> iter(const Proxy& p);
  virtual Proxy keys(const Proxy& p);

  // Whether a call of a wrapped function is recorded as one node; where not, its body is traced through.
  virtual bool is_leaf_function(const Callable& f);

  // A call of a wrapped function: one call_function node, or what its body records.
  Argument call_wrapped(const CallableRef& f, std::span<const Argument> args, const Argument& kwargs = {});

 protected:
  TracerBase() = default;
  explicit TracerBase(Graph& graph) : graph_(&graph) {}
  void set_graph(Graph* graph) { graph_ = graph; }

 private:
  Graph* graph_ = nullptr;
};

// Appends to a graph at its insert point; knows no modules.
class FXJIT_API GraphAppendingTracer : public TracerBase {
 public:
  explicit GraphAppendingTracer(Graph& graph) : TracerBase(graph) {}
  // A tensor is stored on the graph's owning module as _tensor_constant{i}; without one it stays an argument.
  Argument create_arg(const Argument& a) override;
};

// A function over Proxies with its parameters' names.
struct TraceFunction {
  std::string name;
  Signature signature;
  // One argument for each parameter, in order; a starred one is the Proxy of its tuple or dict.
  std::function<Argument(TracerBase& tracer, std::span<const Proxy> args)> body;
};

class FXJIT_API Tracer : public TracerBase {
 public:
  Tracer();
  ~Tracer() override;

  // A fresh graph of the module's forward, or of the function. The tracer can be used again.
  virtual GraphPtr trace(const ModuleRef& root);
  virtual GraphPtr trace(const TraceFunction& function);
  // The module traced last; for a function an empty one that holds the constants it met.
  const ModuleRef& root() const { return root_; }
  GraphPtr graph_ptr() const { return graph_; }

  // Parameters, buffers, tensors and modules of the tree become get_attr nodes; a tensor from elsewhere is stored on
  // the root as _tensor_constant{i}; a NamedTuple becomes a call of its type. NameError for a parameter from elsewhere.
  Argument create_arg(const Argument& a) override;
  Node* create_node(Opcode op, const Target& target, Argument args, Argument kwargs,
                    std::optional<std::string_view> name = {}, Argument type = {}) override;
  virtual bool is_leaf_module(const Module& m, std::string_view qualified_name);
  // NameError "module is not installed as a submodule: <class>".
  virtual std::string path_of_module(const Module& m);
  // A leaf becomes a call_module node; for others `forward` runs.
  virtual Argument call_module(const ModuleRef& m, FunctionRef<Argument()> forward, std::span<const Argument> args,
                               const Argument& kwargs);
  // The placeholders' proxies.
  virtual std::vector<Proxy> create_args_for_root(const Signature& signature);
  // An attribute of a module as a traced value; parameters are cached: one get_attr node each.
  virtual Proxy attribute(const ObjectRef& value);
  std::string get_fresh_qualname(std::string_view prefix);

  // For forward functions: calls a submodule, one value in return.
  Proxy call(const ModuleRef& m, std::initializer_list<Argument> args, Argument kwargs = {});
  Argument call_structured(const ModuleRef& m, std::span<const Argument> args, const Argument& kwargs = {});

  // Path and class of the modules whose forward runs, outermost first: (key, path, class).
  struct ModuleScope {
    std::string key;  // path, with "@n" from the second call of it on
    std::string path;
    std::string class_name;
  };
  const std::vector<ModuleScope>& module_stack() const { return module_stack_; }
  bool record_module_stack = true;  // meta "nn_module_stack"

 private:
  struct Maps;  // identity → path
  void begin(const ModuleRef& root);
  GraphPtr finish(const Argument& result);
  Argument arg_of_object(const ObjectRef& o);
  Argument module_stack_meta();

  ModuleRef root_;
  GraphPtr graph_;
  std::unique_ptr<Maps> maps_;
  std::vector<ModuleScope> module_stack_;
  Argument module_stack_cache_;
};

}  // namespace fxjit::inline v0::fx
