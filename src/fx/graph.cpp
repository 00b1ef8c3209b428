#include "fxjit/fx/graph.h"

#include <algorithm>

#include "fx/block.h"
#include "fx/find_table.h"
#include "fx/namespace.h"
#include "fx/node_store.h"
#include "fx/printer.h"
#include "fxjit/fx/module.h"
#include "fxjit/fx/tracer.h"
#include "support/errors.h"
#include "support/log.h"

namespace fxjit::inline v0::fx {

GraphObserver::~GraphObserver() = default;

Graph::Graph() : store_(std::make_unique<NodeStore>()), names_(std::make_unique<Namespace>(store_->arena)) {
  root_ = new (store_->allocate_node()) Node(this, Opcode::Root, 0);
  root_->target_ = Argument("");
  root_->args_ = Argument::tuple({});
  root_->kwargs_ = Argument::dict({});
  store_->nodes.push_back(root_);
  insert_ = {root_, false};
}

Graph::~Graph() {
  for (Node* n : store_->nodes) {
    if (n->wrapper_ && wrapper_release_) wrapper_release_(n->wrapper_);
    if (store_->borrows) n->unlink_inputs();
    if (!store_->lends) continue;
    for (Use* use = n->first_user_; use; use = use->next) {
      if (use->user->graph_ != this) use->producer = nullptr;
    }
  }
  for (Node* n : store_->nodes) n->~Node();
}

void Graph::keep_foreign(Graph& other) {
  store_->borrows = other.store_->lends = true;
  const std::shared_ptr<Graph> strong = other.weak_from_this().lock();
  auto& kept = store_->foreign;
  if (strong && std::find(kept.begin(), kept.end(), strong) == kept.end()) kept.push_back(strong);
}

namespace {

bool is_callable(const Argument& target) {
  return target.is_object() && target.as_object().object_kind() == ObjectKind::Callable;
}

// The result is a part of the target where nothing changes, as for nearly all names.
std::string_view name_of_target(const Argument& target, std::string& storage) {
  std::string_view name;
  if (is_callable(target)) {
    name = static_cast<const Callable&>(target.as_object()).base_name();
  } else {
    name = target.as_str();
    if (name.size() >= 2 && name.starts_with("__") && name.ends_with("__")) {
      name = name.size() >= 4 ? name.substr(2, name.size() - 4) : std::string_view();
    }
  }
  if (std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) return name;
  return storage = snake_case(name);
}

}  // namespace

void Graph::check_call(Opcode op, const Argument& target, std::string_view name) const {
  const bool wants_callable = op == Opcode::CallFunction;
  if (op == Opcode::Root) throw AssertionError("op 'root' is not in _legal_ops");
  if (wants_callable ? is_callable(target) : target.is_str()) return;
  throw ValueError(support::concat("Node [graph = ", to_string(), ", name = '", name, "'] target ", str(target),
                                   " has type ", target.type_name(), " but a ", wants_callable ? "Callable" : "str",
                                   " is expected"));
}

Node* Graph::create_node(Opcode op, Argument target, Argument args, Argument kwargs,
                         std::optional<std::string_view> name, Argument type) {
  if (args.is_none()) args = Argument::tuple({});
  if (kwargs.is_none()) kwargs = Argument::dict({});
  if (!args.is(ArgumentKind::Tuple)) throw AssertionError("args must be a tuple, got " + args.type_name());
  if (!kwargs.is(ArgumentKind::Dict)) throw AssertionError("kwargs must be a dict, got " + kwargs.type_name());
  if (op == Opcode::Root || (op == Opcode::CallFunction ? !is_callable(target) : !target.is_str())) {
    check_call(op, target, name.value_or(target.is_str() ? target.as_str() : ""));
  }

  const auto id = static_cast<uint32_t>(store_->nodes.size());
  Node* n = new (store_->allocate_node()) Node(this, op, id);
  store_->nodes.push_back(n);
  std::string storage;
  n->keep_name(unique_name(name ? *name : name_of_target(target, storage)));
  n->target_ = std::move(target);
  n->type_ = std::move(type);
  n->args_ = std::move(args);
  n->kwargs_ = std::move(kwargs);
  n->link_inputs();

  // An insert point whose node was erased meanwhile stands before what followed it.
  Node* position = insert_.after ? insert_.anchor->next_ : insert_.anchor;
  while (position->erased_) position = position->next_;
  n->link_before(position);
  ++size_;
  if (find_table_) find_table_->insert(n, n->find_slot_);
  if (observer_) observer_->created(n);
  return n;
}

Node* Graph::placeholder(std::string_view name, std::optional<Argument> default_value, Argument type) {
  Argument args = default_value ? Argument::tuple({*default_value}) : Argument();
  return create_node(Opcode::Placeholder, name, std::move(args), {}, {}, std::move(type));
}

Node* Graph::get_attr(std::string_view path, Argument type) {
  if (owning_module_ && !find_attribute(*owning_module_, path)) {
    support::warn(
        "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
        "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
        "Parameter, or nn.Module.register_buffer to add the necessary buffer");
  }
  return create_node(Opcode::GetAttr, path, {}, {}, {}, std::move(type));
}

Node* Graph::call_function(CallableRef f, Argument args, Argument kwargs, Argument type,
                           std::optional<std::string_view> name) {
  return create_node(Opcode::CallFunction, std::move(f), std::move(args), std::move(kwargs), name, std::move(type));
}

Node* Graph::call_method(std::string_view method, Argument args, Argument kwargs, Argument type) {
  return create_node(Opcode::CallMethod, method, std::move(args), std::move(kwargs), {}, std::move(type));
}

Node* Graph::call_module(std::string_view path, Argument args, Argument kwargs, Argument type) {
  if (owning_module_ && !find_module(*owning_module_, path)) {
    support::warn(
        "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
        "GraphModule.add_submodule to add the necessary submodule");
  }
  return create_node(Opcode::CallModule, path, std::move(args), std::move(kwargs), {}, std::move(type));
}

Node* Graph::output(Argument result, Argument type) {
  return create_node(Opcode::Output, "output", Argument::tuple({std::move(result)}), {}, {}, std::move(type));
}

void Graph::erase_node(Node* n) {
  if (n->num_users_ > 0) {
    throw RuntimeError(support::concat("Tried to erase Node ", n->name(), " but it still had ", n->num_users_,
                                       " users in the graph: ", users_text(*n), "!"));
  }
  if (n->graph_ != this) throw RuntimeError(support::concat("Attempting to remove ", n->name(), " from wrong graph!"));
  if (n->is_root()) throw RuntimeError("Attempting to remove the root of a graph");
  if (n->erased_) {
    support::warn(support::concat("erase_node(", n->name(), ") on an already erased node"));
    return;
  }
  if (observer_) observer_->erased(n);
  if (find_table_) find_table_->remove(n, n->find_slot_);
  n->unlink();
  n->erased_ = true;
  --size_;
  // The inputs lose this user, and the node keeps its arguments' structure for whoever still reads it.
  const auto none = [](Node*) { return Argument(); };
  n->unlink_inputs();
  detail::map_nodes(n->args_, none);
  detail::map_nodes(n->kwargs_, none);
}

std::vector<Node*> Graph::find_nodes(Opcode op, const Argument& target, bool sort) const {
  if (op == Opcode::CallFunction && target.is_none()) {
    throw AssertionError("target must not be None for call_function op");
  }
  if (!find_table_) {
    find_table_ = std::make_unique<FindTable>();
    for (Node* n : store_->nodes) {
      if (!n->erased_ && !n->is_root()) find_table_->insert(n, n->find_slot_);
    }
    work_.nodes += store_->nodes.size();
  }
  std::vector<Node*> found;
  if (const auto* bucket = find_table_->find(op, target)) {
    for (Node* n : *bucket) {
      if (n && (target.is_none() || n->target_ == target)) found.push_back(n);
    }
  }
  if (sort) std::sort(found.begin(), found.end(), [](Node* a, Node* b) { return *a < *b; });
  return found;
}

Node* Graph::output_node() const {
  for (Node* n : nodes().reversed()) {
    if (n->op_ == Opcode::Output) return n;
  }
  return nullptr;
}

// ---- Insert points

InsertScope::InsertScope(Graph& graph, InsertPoint point) : graph_(&graph), saved_(graph.insert_point()) {
  graph.set_insert_point(point);
}

InsertScope::~InsertScope() {
  if (graph_) graph_->set_insert_point(saved_);
}

InsertScope Graph::inserting_before(Node* n) {
  if (n && n->graph_ != this) throw AssertionError("Node to insert before is not in graph.");
  return n ? InsertScope(*this, {n, false}) : InsertScope(*this, {root_, true});
}

InsertScope Graph::inserting_after(Node* n) {
  if (n && n->graph_ != this) throw AssertionError("Node to insert after is not in graph.");
  return n ? InsertScope(*this, {n, true}) : InsertScope(*this, {root_, false});
}

// ---- Names

std::string_view Graph::unique_name(std::string_view candidate) {
  return names_->create_name(candidate, work_.name_probes);
}

std::string Graph::create_name(std::string_view candidate) { return std::string(unique_name(candidate)); }

std::string_view Graph::take_name(std::string_view name) {
  bool again = false;
  const std::string_view kept = names_->take(name, again);
  names_may_repeat_ |= again;
  return kept;
}

std::string Graph::target_to_name(const Argument& target) {
  std::string storage;
  return std::string(name_of_target(target, storage));
}

// ---- Rest

void Graph::traverse(ObjectVisitor& visitor) const {
  for (const Node* n : store_->nodes) {
    for (const Argument* a : {&n->target_, &n->args_, &n->kwargs_, &n->type_}) fx::traverse(*a, visitor);
    if (!n->meta_) continue;
    for (const auto& entry : n->meta_->entries()) fx::traverse(entry.second, visitor);
    if (n->meta_->extension) visitor.object(*n->meta_->extension);
  }
  if (extension_) visitor.object(*extension_);
}

size_t Graph::created() const { return store_->nodes.size(); }
Node* Graph::node_by_id(uint32_t id) const { return store_->nodes[id]; }
size_t Graph::bytes() const {
  return store_->node_arena.bytes() + store_->arena.bytes() + store_->nodes.capacity() * sizeof(Node*);
}

TracerBase& Graph::appending_tracer() {
  if (!appending_tracer_) appending_tracer_ = std::make_unique<GraphAppendingTracer>(*this);
  return *appending_tracer_;
}

}  // namespace fxjit::inline v0::fx
