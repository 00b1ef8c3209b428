// A graph together with the attributes it uses: a module that runs the graph.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "fxjit/fx/graph.h"
#include "fxjit/fx/module.h"

namespace fxjit::inline v0::fx {

class GraphModule;

// The program that recompile() made current. Immutable; runs on it keep it alive.
struct Snapshot {
  std::shared_ptr<const Graph> graph;
  uint64_t version = 0;  // counts recompile() calls; unique within the GraphModule
};

// How a GraphModule runs; handed in by the driver. One Executor belongs to one GraphModule.
class FXJIT_API Executor {
 public:
  virtual ~Executor();
  virtual Value call(GraphModule& module, std::span<const Value> args, const Value& kwargs) = 0;
  virtual std::string code(GraphModule& module) = 0;
  // The snapshot has changed.
  virtual void recompile(GraphModule& module) = 0;
};

using ExecutorPtr = std::shared_ptr<Executor>;
using ExecutorFactory = ExecutorPtr (*)(GraphModule& module);

// The driver registers its factory once, at load time; without one GraphModules run in the Interpreter. This is the one
// hook by which the fx floor reaches upward.
FXJIT_API void register_executor_factory(ExecutorFactory factory);

class FXJIT_API GraphModule : public Module {
 public:
  // Takes references to those attributes of `root` that the graph uses, creating the modules on their paths.
  // RuntimeError naming the target that `root` lacks.
  static Ref<GraphModule> create(const ModuleRef& root, GraphPtr graph, std::string class_name = "GraphModule");
  // Uses `attributes` itself (a binding's view of its own module object).
  static Ref<GraphModule> adopt(ModuleRef attributes, GraphPtr graph, std::string class_name = "GraphModule");
  ~GraphModule() override;

  Graph& graph() const { return *graph_; }
  const GraphPtr& graph_ptr() const { return graph_; }
  // Takes the graph itself, and recompiles.
  void set_graph(GraphPtr graph);
  // Makes the graph as it is now what runs. Until then an edited graph changes nothing.
  void recompile();
  std::shared_ptr<const Snapshot> snapshot() const;
  // The version of the current snapshot, without a lock.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // The LLVM IR of forward; the graph's text while no executor is registered.
  std::string code();

  Value call(std::span<const Value> args, const Value& kwargs) override;
  Value operator()(std::initializer_list<Value> args) { return call(std::span(args.begin(), args.size()), {}); }
  // Traces through the graph: records a copy of its nodes.
  Argument forward(Tracer& tracer, std::span<const Argument> args, const Argument& kwargs) override;
  std::optional<Signature> signature() const override;

  std::string class_name() const override { return class_name_; }
  std::vector<Attribute> attributes() const override { return attributes_->attributes(); }
  ObjectRef attribute(std::string_view name) const override { return attributes_->attribute(name); }
  std::optional<AttributeKind> attribute_kind(std::string_view name) const override {
    return attributes_->attribute_kind(name);
  }
  void set_attribute(std::string_view name, ObjectRef value, AttributeKind kind) override;
  bool delete_attribute(std::string_view name) override { return attributes_->delete_attribute(name); }
  uint64_t attributes_version() const override { return attributes_->attributes_version(); }
  bool is_standard() const override { return false; }
  void traverse(ObjectVisitor& visitor) const override;
  const ModuleRef& attributes_module() const { return attributes_; }

  // A GraphModule of a copy of the graph; attributes are shared.
  Ref<GraphModule> copy() const;
  // bool results as in torch.fx.
  bool add_submodule(std::string_view path, ModuleRef m);
  bool delete_submodule(std::string_view path);
  void delete_all_unused_submodules();

  // Null as long as no factory is registered and none was set.
  ExecutorPtr executor();
  void set_executor(ExecutorPtr executor);

 private:
  GraphModule(ModuleRef attributes, std::string class_name);
  template <class T, class... Args>
  friend Ref<T> make_ref(Args&&... args);

  ModuleRef attributes_;
  std::string class_name_;
  GraphPtr graph_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::atomic<uint64_t> version_{0};
  ExecutorPtr executor_;
  mutable std::mutex mutex_;  // snapshot_ and executor_: calls run in several threads, also during recompile
};

using GraphModuleRef = Ref<GraphModule>;

}  // namespace fxjit::inline v0::fx
