// One operation of a Graph. Nodes live in their graph's arena: a Node* is valid, and readable even after erase_node,
// as long as the Graph.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/fx/argument.h"
#include "fxjit/fx/callable.h"
#include "fxjit/fx/node_meta.h"

namespace fxjit::inline v0 {
struct TensorType;

namespace fx {

class Graph;

enum class Opcode : uint8_t { Placeholder, GetAttr, CallFunction, CallMethod, CallModule, Output, Root };

FXJIT_API std::string_view to_string(Opcode op);  // "call_function"
FXJIT_API std::optional<Opcode> parse_opcode(std::string_view name);

// One edge: `user` reads `producer`, once or more often. Linked into the producer's list of users.
struct Use {
  Node* producer;
  Node* user;
  Use* prev;
  Use* next;
};

class FXJIT_API Node {
 public:
  Graph& graph() const { return *graph_; }
  Opcode op() const { return op_; }
  std::string_view name() const { return {name_, name_size_}; }
  // A Str, or for call_function an Object that is a Callable.
  const Argument& target() const { return target_; }
  std::string_view target_str() const { return target_.as_str(); }  // TypeError for call_function
  Callable& callable() const;                                       // TypeError for the others
  const Argument& args() const { return args_; }                    // a Tuple
  const Argument& kwargs() const { return kwargs_; }                // a Dict with Str keys
  const Argument& arg(size_t i) const { return args_[i]; }
  const Argument& type() const { return type_; }  // the annotation; None without one
  uint32_t id() const { return id_; }             // dense: creation order within the graph
  bool erased() const { return erased_; }

  // Neighbours in program order; the root sentinel closes the ring.
  Node* next() const { return next_; }
  Node* prev() const { return prev_; }
  bool is_root() const { return op_ == Opcode::Root; }
  // Program order, in constant time.
  bool operator<(const Node& other) const { return order_ < other.order_; }

  // Assigning keeps the use lists right. A node that is assigned moves to the end of its inputs' users, as in torch.fx.
  void set_args(Argument args);      // AssertionError unless a Tuple
  void set_kwargs(Argument kwargs);  // AssertionError unless a Dict
  void set_args_kwargs(Argument args, Argument kwargs);
  void update_arg(size_t i, Argument value);  // IndexError
  void insert_arg(size_t i, Argument value);  // AssertionError
  void update_kwarg(std::string_view key, Argument value);
  void replace_input_with(const Node* old_input, const Argument& new_input);
  // Returns the users that were changed. Users for which `filter` is false keep their input. With `propagate_meta` the
  // (empty) meta of `replacement` becomes a copy of this node's.
  std::vector<Node*> replace_all_uses_with(Node* replacement, FunctionRef<bool(Node*)> filter = {},
                                           bool propagate_meta = false);
  // The same with any structure of nodes in place of one.
  std::vector<Node*> replace_all_uses_with(const Argument& replacement, FunctionRef<bool(Node*)> filter = {});

  void set_op(Opcode op);
  void set_target(Argument target);
  void set_type(Argument type) { type_ = std::move(type); }
  // Takes `name` as it is; lint complains if it is not unique. `rename` asks the graph for a unique one.
  void set_name(std::string_view name);
  void rename(std::string_view candidate);

  // Move `x` before (behind) this node. AssertionError if it is of another graph; the same node: a warning.
  void prepend(Node* x);
  void append(Node* x) { next_->prepend(x); }

  // Distinct users in the order in which they began to use this node; distinct inputs, args before kwargs.
  size_t num_users() const { return num_users_; }
  class UserRange users() const;
  class InputRange all_input_nodes() const;
  std::vector<Node*> users_vector() const;
  bool uses(const Node* producer) const;

  // True if it must stay though nobody uses it: placeholder, output, impure functions and modules, in-place methods.
  bool is_impure(bool impure_random = true) const;

  const NodeMeta* meta_if_any() const { return meta_.get(); }
  NodeMeta& meta();
  const std::shared_ptr<const TensorType>& tensor_type() const { return tensor_type_; }
  void set_tensor_type(std::shared_ptr<const TensorType> t) { tensor_type_ = std::move(t); }

  // "%add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})"
  std::string format_node() const;

  // A slot for the binding's wrapper object; see Graph::set_wrapper_release.
  void* wrapper() const { return wrapper_; }
  void set_wrapper(void* wrapper);

 private:
  friend class Graph;
  friend class UserRange;
  friend class InputRange;
  Node(Graph* graph, Opcode op, uint32_t id) : graph_(graph), id_(id), op_(op) {}
  ~Node() = default;
  Node(const Node&) = delete;

  void keep_name(std::string_view kept);  // of the graph's arena
  void link_inputs();
  void unlink_inputs();
  void link_before(Node* position);
  void unlink();

  // In the order of how often they are read, by cache lines: the list; the edges; the rest.
  Graph* graph_;
  Node* next_ = this;
  Node* prev_ = this;
  void* wrapper_ = nullptr;
  const char* name_ = "";
  int64_t order_ = 0;
  uint32_t name_size_ = 0;
  uint32_t id_;
  uint32_t num_users_ = 0;
  Opcode op_;
  bool erased_ = false;

  Use* first_user_ = nullptr;
  Use* last_user_ = nullptr;
  Use* inputs_ = nullptr;  // an array in the graph's arena
  uint32_t num_inputs_ = 0, inputs_capacity_ = 0;
  Argument args_, kwargs_;

  Argument target_, type_;
  struct Destroy {
    void operator()(NodeMeta* meta) const { meta->~NodeMeta(); }
  };
  std::unique_ptr<NodeMeta, Destroy> meta_;  // in the graph's arena
  std::shared_ptr<const TensorType> tensor_type_;
  uint32_t find_slot_ = 0;  // place in the graph's table for find_nodes
};

static_assert(sizeof(Node) <= 192, "the budget: a graph of a million nodes is to stay below half a gigabyte");

}  // namespace fx
}  // namespace fxjit::inline v0

#include "fxjit/fx/node_ranges.h"
