#include "fxjit/fx/node.h"

#include <algorithm>
#include <array>

#include "fx/block.h"
#include "fx/find_table.h"
#include "fx/node_store.h"
#include "fxjit/fx/graph.h"
#include "fxjit/fx/module.h"
#include "support/errors.h"
#include "support/log.h"

namespace fxjit::inline v0::fx {

namespace {
constexpr std::array<std::string_view, 7> kOpcodes{"placeholder", "get_attr", "call_function", "call_method",
                                                   "call_module", "output",   "root"};
}

std::string_view to_string(Opcode op) { return kOpcodes[static_cast<size_t>(op)]; }

std::optional<Opcode> parse_opcode(std::string_view name) {
  for (size_t i = 0; i < kOpcodes.size(); ++i) {
    if (kOpcodes[i] == name) return static_cast<Opcode>(i);
  }
  return std::nullopt;
}

Callable& Node::callable() const {
  Object* target = target_.object_or_null();
  if (!target || target->object_kind() != ObjectKind::Callable) {
    throw TypeError(support::concat("node ", name(), " (", to_string(op_), ") has no callable target"));
  }
  return static_cast<Callable&>(*target);  // nothing else is of this kind
}

// ---- Edges. A producer's users form a list; a user's inputs an array in the graph's arena. While a user's edges are
// made, each new one goes to the end of its producer's list: a producer that was seen before has this user last.

// Edges that are there stay, and keep their places among the producers' users.
void Node::link_inputs() {
  const uint32_t wanted = detail::node_count(args_) + detail::node_count(kwargs_), kept = num_inputs_;
  if (wanted > inputs_capacity_) {
    Use* const inputs = graph_->store_->arena.allocate_array<Use>(wanted);
    for (uint32_t i = 0; i < kept; ++i) {
      const Use& use = inputs[i] = inputs_[i];
      if (!use.producer) continue;  // its graph is gone
      (use.prev ? use.prev->next : use.producer->first_user_) = &inputs[i];
      (use.next ? use.next->prev : use.producer->last_user_) = &inputs[i];
    }
    inputs_ = inputs;
    inputs_capacity_ = wanted;
  }
  const auto link = [&](Node* producer) {
    if (producer->last_user_ && producer->last_user_->user == this) return;
    if (std::any_of(inputs_, inputs_ + kept, [&](const Use& use) { return use.producer == producer; })) return;
    Use* use = &inputs_[num_inputs_++];
    *use = {producer, this, producer->last_user_, nullptr};
    (producer->last_user_ ? producer->last_user_->next : producer->first_user_) = use;
    producer->last_user_ = use;
    ++producer->num_users_;
    if (producer->graph_ != graph_) graph_->keep_foreign(*producer->graph_);
  };
  detail::visit_nodes(args_, link);
  detail::visit_nodes(kwargs_, link);
  graph_->work_.uses += num_inputs_ - kept;
}

void Node::unlink_inputs() {
  for (uint32_t i = 0; i < num_inputs_; ++i) {
    Use& use = inputs_[i];
    if (!use.producer) continue;  // its graph is gone
    (use.prev ? use.prev->next : use.producer->first_user_) = use.next;
    (use.next ? use.next->prev : use.producer->last_user_) = use.prev;
    --use.producer->num_users_;
  }
  graph_->work_.uses += num_inputs_;
  num_inputs_ = 0;
}

void Node::set_args(Argument args) { set_args_kwargs(std::move(args), kwargs_); }
void Node::set_kwargs(Argument kwargs) { set_args_kwargs(args_, std::move(kwargs)); }

void Node::set_args_kwargs(Argument args, Argument kwargs) {
  if (!args.is(ArgumentKind::Tuple)) throw AssertionError("args must be a tuple, got " + args.type_name());
  if (!kwargs.is(ArgumentKind::Dict)) throw AssertionError("kwargs must be a dict, got " + kwargs.type_name());
  unlink_inputs();
  args_ = std::move(args);
  kwargs_ = std::move(kwargs);
  link_inputs();
  ++graph_->version_;
}

void Node::update_arg(size_t i, Argument value) {
  if (i >= args_.size()) throw IndexError("list assignment index out of range");
  std::vector<Argument> items(args_.items().begin(), args_.items().end());
  items[i] = std::move(value);
  set_args(Argument::tuple(items));
}

void Node::insert_arg(size_t i, Argument value) {
  if (i > args_.size()) {
    throw AssertionError(support::concat("insert_args index must be between 0 and len(self.args), got ", i));
  }
  std::vector<Argument> items(args_.items().begin(), args_.items().end());
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(i), std::move(value));
  args_ = Argument::tuple(items);
  link_inputs();
  ++graph_->version_;
}

void Node::update_kwarg(std::string_view key, Argument value) {
  std::vector<DictEntry> entries(kwargs_.entries().begin(), kwargs_.entries().end());
  entries.push_back({key, std::move(value)});
  set_kwargs(Argument::dict(entries));
}

void Node::replace_input_with(const Node* old_input, const Argument& new_input) {
  const Argument with = new_input;  // it may lie inside of the arguments
  const auto replace = [&](Node* n) { return n == old_input ? with : Argument(n); };
  if (graph_->observer_) graph_->observer_->replaced(const_cast<Node*>(old_input), new_input, this);
  unlink_inputs();
  detail::map_nodes(args_, replace);
  detail::map_nodes(kwargs_, replace);
  link_inputs();
  ++graph_->version_;
}

std::vector<Node*> Node::replace_all_uses_with(Node* replacement, FunctionRef<bool(Node*)> filter,
                                               bool propagate_meta) {
  if (propagate_meta) {
    if (replacement->meta_ && !replacement->meta_->empty()) {
      throw AssertionError(
          "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
          "but replace_with already has .meta keys");
    }
    if (meta_) replacement->meta().copy_from(*meta_);
  }
  return replace_all_uses_with(Argument(replacement), filter);
}

std::vector<Node*> Node::replace_all_uses_with(const Argument& replacement, FunctionRef<bool(Node*)> filter) {
  std::vector<Node*> users = users_vector();
  if (!filter) {
    for (Node* user : users) user->replace_input_with(this, replacement);
    return users;
  }
  std::vector<Node*> changed;
  for (Node* user : users) {
    if (!filter(user)) continue;
    changed.push_back(user);
    user->replace_input_with(this, replacement);
  }
  return changed;
}

std::vector<Node*> Node::users_vector() const {
  std::vector<Node*> all;
  all.reserve(num_users_);
  for (Node* user : users()) all.push_back(user);
  return all;
}

bool Node::uses(const Node* producer) const {
  for (Node* input : all_input_nodes()) {
    if (input == producer) return true;
  }
  return false;
}

// ---- Place in the list

void Node::link_before(Node* position) {
  next_ = position;
  prev_ = position->prev_;
  prev_->next_ = this;
  position->prev_ = this;
  graph_->label(this);
  ++graph_->work_.nodes;
  ++graph_->version_;
}

// The node keeps its own links, so that an iteration that stands on it goes on.
void Node::unlink() {
  prev_->next_ = next_;
  next_->prev_ = prev_;
  ++graph_->version_;
}

void Node::prepend(Node* x) {
  if (x->graph_ != graph_) throw AssertionError("Attempting to move a Node into a different Graph");
  if (x == this) {
    support::warn("Trying to prepend a node to itself. This behavior has no effect on the graph.");
    return;
  }
  if (x->erased_ || erased_) throw RuntimeError("Attempting to move an erased Node, or to move one next to it");
  x->unlink();
  x->link_before(this);
}

// ---- Properties

void Node::set_op(Opcode op) {
  const bool listed = graph_->find_table_ && !erased_;
  if (listed) graph_->find_table_->remove(this, find_slot_);
  op_ = op;
  if (listed) graph_->find_table_->insert(this, find_slot_);
  ++graph_->version_;
}

void Node::set_target(Argument target) {
  const bool listed = graph_->find_table_ && !erased_;
  if (listed) graph_->find_table_->remove(this, find_slot_);
  target_ = std::move(target);
  if (listed) graph_->find_table_->insert(this, find_slot_);
  ++graph_->version_;
}

void Node::keep_name(std::string_view kept) {
  name_ = kept.data();
  name_size_ = static_cast<uint32_t>(kept.size());
}

void Node::set_name(std::string_view name) { keep_name(graph_->take_name(name)); }

void Node::rename(std::string_view candidate) {
  if (candidate != name()) keep_name(graph_->unique_name(candidate));
}

NodeMeta& Node::meta() {
  if (!meta_) meta_.reset(new (graph_->store_->arena.allocate(sizeof(NodeMeta), alignof(NodeMeta))) NodeMeta());
  return *meta_;
}

void Node::set_wrapper(void* wrapper) { wrapper_ = wrapper; }

bool Node::is_impure(bool impure_random) const {
  switch (op_) {
    case Opcode::Placeholder:
    case Opcode::Output:
    case Opcode::Root:
      return true;
    case Opcode::GetAttr:
      return false;
    case Opcode::CallFunction:
      return callable().is_impure(args_, kwargs_, impure_random);
    case Opcode::CallMethod: {
      // torch.fx removes `x.mul_(2)` and changes what the program computes; methods that write end in one underscore.
      const std::string_view name = target_str();
      return name.ends_with('_') && !name.ends_with("__");
    }
    case Opcode::CallModule: {
      const Module* owner = graph_->owning_module();
      if (!owner) throw AssertionError("self.graph.owning_module not set for purity check");
      const ModuleRef module = find_module(*owner, target_str());
      if (!module) throw AssertionError(support::concat("Did not find expected submodule target ", target_str()));
      return module->is_impure();
    }
  }
  return false;
}

// ---- Meta

const Argument* NodeMeta::find(std::string_view key) const {
  for (const auto& [k, v] : entries_) {
    if (k == key) return &v;
  }
  return nullptr;
}

void NodeMeta::set(std::string_view key, Argument value) {
  for (auto& [k, v] : entries_) {
    if (k == key) {
      v = std::move(value);
      return;
    }
  }
  entries_.emplace_back(key, std::move(value));
}

bool NodeMeta::erase(std::string_view key) {
  return std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; }) > 0;
}

void NodeMeta::copy_from(const NodeMeta& other) {
  entries_ = other.entries_;
  extension = other.extension ? other.extension->clone() : nullptr;
}

}  // namespace fxjit::inline v0::fx
