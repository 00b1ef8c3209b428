#include "fxjit/fx/graph_module.h"

#include <atomic>
#include <unordered_set>

#include "fx/bind.h"
#include "fx/paths.h"
#include "fxjit/fx/interpreter.h"
#include "fxjit/fx/tracer.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

Executor::~Executor() = default;

namespace {
// Set once, when the driver's library is loaded: floor 1 cannot name floor 8.
std::atomic<ExecutorFactory> executor_factory{nullptr};
}  // namespace

void register_executor_factory(ExecutorFactory factory) { executor_factory.store(factory, std::memory_order_release); }

GraphModule::GraphModule(ModuleRef attributes, std::string class_name)
    : attributes_(std::move(attributes)), class_name_(std::move(class_name)) {}

GraphModule::~GraphModule() {
  if (graph_ && graph_->owning_module() == this) graph_->set_owning_module(nullptr);
}

namespace {

AttributeKind kind_at(const Module& root, std::string_view path, const ObjectRef& value) {
  if (value->object_kind() == ObjectKind::Module) return AttributeKind::Module;
  const auto [parent, name] = split_last(path);
  const ModuleRef holder = parent.empty() ? nullptr : find_module(root, parent);
  const auto kind = holder ? holder->attribute_kind(name) : root.attribute_kind(name);
  // Plain tensors become buffers, as in torch.fx: they move and are saved with the module.
  return !kind || *kind == AttributeKind::Plain ? AttributeKind::Buffer : *kind;
}

// A module that holds what the graph uses of `root`, under the same paths.
ModuleRef used_attributes(const Module& root, const Graph& graph) {
  const auto copy = make_ref<BasicModule>(root.class_name());
  std::unordered_set<std::string_view> done;
  for (Node* n : graph.nodes()) {
    if (n->op() != Opcode::GetAttr && n->op() != Opcode::CallModule) continue;
    const std::string_view path = n->target_str();
    if (!done.insert(path).second) continue;
    const ObjectRef value = find_attribute(root, path);
    if (!value) {
      throw RuntimeError(
          concat("Node ", n->name(), " referenced target ", path, " but that target was not provided in ``root``!"));
    }
    // Nothing to do inside a module that was taken as a whole; a module made for a path before becomes the whole one.
    if (find_attribute(*copy, path) == value) continue;
    set_attribute_at(*copy, path, value, kind_at(root, path, value));
  }
  return copy;
}

}  // namespace

Ref<GraphModule> GraphModule::create(const ModuleRef& root, GraphPtr graph, std::string class_name) {
  ModuleRef attributes = used_attributes(*root, *graph);
  return adopt(std::move(attributes), std::move(graph), std::move(class_name));
}

Ref<GraphModule> GraphModule::adopt(ModuleRef attributes, GraphPtr graph, std::string class_name) {
  Ref<GraphModule> module(new GraphModule(std::move(attributes), std::move(class_name)));
  module->set_graph(std::move(graph));
  return module;
}

void GraphModule::set_graph(GraphPtr graph) {
  if (!graph) throw AssertionError("Expected a Graph instance, but got null");
  if (graph_ && graph_->owning_module() == this) graph_->set_owning_module(nullptr);
  graph_ = std::move(graph);
  graph_->set_owning_module(this);
  recompile();
}

void GraphModule::recompile() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->graph = graph_->copy();
  ExecutorPtr executor;
  std::shared_ptr<const Snapshot> old;  // freed outside the lock, where its last run may end
  {
    std::lock_guard lock(mutex_);
    snapshot->version = version_.load(std::memory_order_relaxed) + 1;
    old = std::exchange(snapshot_, snapshot);
    version_.store(snapshot->version, std::memory_order_release);  // whoever sees it finds its snapshot
    executor = executor_;
  }
  if (executor) executor->recompile(*this);
}

std::shared_ptr<const Snapshot> GraphModule::snapshot() const {
  std::lock_guard lock(mutex_);
  return snapshot_;
}

ExecutorPtr GraphModule::executor() {
  {
    std::lock_guard lock(mutex_);
    if (executor_) return executor_;
  }
  const ExecutorFactory factory = executor_factory.load(std::memory_order_acquire);
  if (!factory) return nullptr;
  ExecutorPtr made = factory(*this);  // may ask for the snapshot
  std::lock_guard lock(mutex_);
  if (!executor_) executor_ = std::move(made);
  return executor_;
}

void GraphModule::set_executor(ExecutorPtr executor) {
  std::lock_guard lock(mutex_);
  std::swap(executor_, executor);
}

std::string GraphModule::code() {
  if (const ExecutorPtr e = executor()) return e->code(*this);
  return snapshot()->graph->to_string();
}

Value GraphModule::call(std::span<const Value> args, const Value& kwargs) {
  if (const ExecutorPtr e = executor()) return e->call(*this, args, kwargs);
  const auto program = snapshot();
  return Interpreter(this, *program->graph).run(args, kwargs);
}

// The generated code of torch.fx run on Proxies: each node is recorded anew, through the tracer's hooks.
Argument GraphModule::forward(Tracer& tracer, std::span<const Argument> args, const Argument& kwargs) {
  const auto program = snapshot();
  const Graph& graph = *program->graph;
  std::vector<Argument> values(graph.created());
  for (auto& [n, value] : bind_arguments(graph, args, kwargs)) values[n->id()] = std::move(value);
  const auto mapped = [&](Node* n) { return values[n->id()]; };
  for (Node* n : graph.nodes()) {
    Argument node_args = map_arg(n->args(), mapped), node_kwargs = map_arg(n->kwargs(), mapped);
    Argument& value = values[n->id()];
    switch (n->op()) {
      case Opcode::Placeholder:
      case Opcode::Root:
        break;
      case Opcode::GetAttr: {
        const ObjectRef attribute = find_attribute(*this, n->target_str());
        if (!attribute) throw RuntimeError(concat("Node referenced nonexistent target ", n->target_str()));
        value = attribute->object_kind() == ObjectKind::Module ? tracer.create_arg(attribute)
                                                               : Argument(tracer.attribute(attribute));
        break;
      }
      case Opcode::CallFunction:
        value = tracer.call_wrapped(CallableRef(&n->callable()), node_args.items(), node_kwargs);
        break;
      case Opcode::CallMethod:
        value = tracer.create_proxy(Opcode::CallMethod, n->target(), node_args, node_kwargs);
        break;
      case Opcode::CallModule: {
        const ModuleRef module = find_module(*this, n->target_str());
        if (!module) throw RuntimeError(concat("Node referenced nonexistent target ", n->target_str()));
        value = tracer.call_structured(module, node_args.items(), node_kwargs);
        break;
      }
      case Opcode::Output:
        return node_args[0];
    }
  }
  return {};
}

std::optional<Signature> GraphModule::signature() const {
  Signature signature;
  for (Node* n : snapshot()->graph->find_nodes(Opcode::Placeholder)) {
    const std::string_view target = n->target_str();
    const size_t stars = target.find_first_not_of('*');
    Parameter p{std::string(target.substr(std::min(stars, target.size())))};
    p.kind = stars == 1   ? ParameterKind::VarPositional
             : stars == 2 ? ParameterKind::VarKeyword
                          : ParameterKind::Positional;
    if (n->args().size() > 0) p.default_value = n->arg(0);
    p.annotation = n->type();
    signature.push_back(std::move(p));
  }
  return signature;
}

void GraphModule::set_attribute(std::string_view name, ObjectRef value, AttributeKind kind) {
  attributes_->set_attribute(name, std::move(value), kind);
}

void GraphModule::traverse(ObjectVisitor& visitor) const {
  visitor.object(*attributes_);
  graph_->traverse(visitor);
  if (const auto s = snapshot()) s->graph->traverse(visitor);
}

Ref<GraphModule> GraphModule::copy() const { return adopt(attributes_, graph_->copy(), class_name_); }

bool GraphModule::add_submodule(std::string_view path, ModuleRef m) {
  try {
    set_attribute_at(*attributes_, path, std::move(m), AttributeKind::Module);
    return true;
  } catch (const TypeError&) {
    return false;  // the path leads through something that is no module
  }
}

bool GraphModule::delete_submodule(std::string_view path) {
  return find_module(*attributes_, path) && delete_attribute_at(*attributes_, path);
}

void GraphModule::delete_all_unused_submodules() {
  std::unordered_set<std::string> used;  // paths and their prefixes
  std::unordered_set<std::string> called;
  for (Node* n : graph_->nodes()) {
    if (n->op() != Opcode::GetAttr && n->op() != Opcode::CallModule) continue;
    std::string path(n->target_str());
    if (n->op() == Opcode::CallModule) called.insert(path);
    for (; !path.empty(); path = std::string(split_last(path).first)) used.insert(path);
  }
  const auto inside_called = [&](std::string path) {
    for (; !path.empty(); path = std::string(split_last(path).first)) {
      if (called.contains(path)) return true;
    }
    return false;
  };
  for (const auto& [path, module] : named_modules(attributes_)) {
    if (!path.empty() && !used.contains(path) && !inside_called(path)) delete_submodule(path);
  }
}

}  // namespace fxjit::inline v0::fx
