// A program as a list of nodes, in the order of execution. Construction, editing and checking are linear in the number
// of nodes and edges.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fxjit/fx/node.h"
#include "fxjit/fx/node_list.h"

namespace fxjit::inline v0::fx {

class Graph;
class Module;
class Namespace;
class FindTable;
class NodeStore;
using GraphPtr = std::shared_ptr<Graph>;
// Old node → what stands for it in the new graph (mostly a node).
using NodeMap = std::unordered_map<const Node*, Argument>;

// Where create_node puts a node: before the anchor, or directly behind it (so that two nodes end up in reverse order,
// as in torch.fx).
struct InsertPoint {
  Node* anchor = nullptr;
  bool after = false;
};

// Restores the graph's insert point when it goes, unless `release` made the new one permanent.
class FXJIT_API InsertScope {
 public:
  InsertScope(Graph& graph, InsertPoint point);
  InsertScope(InsertScope&& o) noexcept : graph_(std::exchange(o.graph_, nullptr)), saved_(o.saved_) {}
  InsertScope& operator=(InsertScope&&) = delete;
  ~InsertScope();
  void release() { graph_ = nullptr; }

 private:
  Graph* graph_;
  InsertPoint saved_;
};

// Told of changes, for passes that watch a graph. Not owned.
class FXJIT_API GraphObserver {
 public:
  virtual ~GraphObserver();
  virtual void created(Node*) {}
  virtual void erased(Node*) {}
  virtual void replaced(Node* old_input, const Argument& new_input, Node* user) {
    (void)old_input, (void)new_input, (void)user;
  }
};

// Steps of the algorithms, so that tests can show linearity without a clock.
struct WorkCounters {
  uint64_t nodes = 0;         // nodes visited or linked
  uint64_t uses = 0;          // edges added, removed or visited
  uint64_t name_probes = 0;   // look-ups of candidate names
  uint64_t order_labels = 0;  // order labels written
  uint64_t total() const { return nodes + uses + name_probes + order_labels; }
};

class FXJIT_API Graph : public std::enable_shared_from_this<Graph> {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  static GraphPtr create() { return std::make_shared<Graph>(); }

  // Creates a node at the insert point. `args` is a Tuple or None, `kwargs` a Dict or None. Errors: AssertionError for
  // arguments of another kind or the root opcode, ValueError for a target of the wrong kind.
  Node* create_node(Opcode op, Argument target, Argument args = {}, Argument kwargs = {},
                    std::optional<std::string_view> name = {}, Argument type = {});
  Node* placeholder(std::string_view name, std::optional<Argument> default_value = {}, Argument type = {});
  Node* get_attr(std::string_view path, Argument type = {});
  Node* call_function(CallableRef f, Argument args = {}, Argument kwargs = {}, Argument type = {},
                      std::optional<std::string_view> name = {});
  Node* call_method(std::string_view method, Argument args = {}, Argument kwargs = {}, Argument type = {});
  Node* call_module(std::string_view path, Argument args = {}, Argument kwargs = {}, Argument type = {});
  Node* output(Argument result, Argument type = {});

  // RuntimeError for a node that is used or of another graph, a warning for one erased before.
  void erase_node(Node* n);
  Node* node_copy(const Node& n, FunctionRef<Argument(Node*)> arg_transform = {});
  // Copies all nodes of `g` that `val_map` lacks to the insert point and returns what stands for the value of its
  // output (which is not copied); empty if it has none. KeyError for an input that is neither copied nor mapped.
  std::optional<Argument> graph_copy(const Graph& g, NodeMap& val_map, const Node** output_node = nullptr);
  // A deep copy, output and meta included. Foreign objects are shared.
  GraphPtr copy(NodeMap* val_map = nullptr) const;

  NodeList nodes() const { return NodeList(root_, size_, false); }
  size_t size() const { return size_; }
  Node* root() const { return root_; }
  // The output node; null if there is none.
  Node* output_node() const;
  // Nodes of this opcode and target, in program order (`sort`) or in order of creation. call_function needs a target.
  std::vector<Node*> find_nodes(Opcode op, const Argument& target = {}, bool sort = true) const;

  // The scope ends with the returned object; `.release()` makes the insert point permanent. Null: the beginning for
  // inserting_before, the end for inserting_after. AssertionError for a node of another graph.
  [[nodiscard]] InsertScope inserting_before(Node* n = nullptr);
  [[nodiscard]] InsertScope inserting_after(Node* n = nullptr);
  InsertPoint insert_point() const { return insert_; }
  void set_insert_point(InsertPoint p) { insert_ = p; }

  // Ownership, order, names, opcodes, kinds of targets; with a module also that attribute and module targets exist.
  // RuntimeError or ValueError with torch.fx's text.
  void lint() const { lint(owning_module_); }
  void lint(const Module* module) const;
  // Removes unused nodes that are not impure; lints first. Returns whether anything changed.
  bool eliminate_dead_code(FunctionRef<bool(const Node&)> is_impure = {}, bool impure_random = true);

  std::string to_string() const;       // signature and formatted nodes, as str(graph) in torch.fx
  std::string format_tabular() const;  // what print_tabular prints
  void print_tabular() const;

  // A name like `candidate` that is free in this graph, by torch.fx's rules; it is taken from now on.
  std::string create_name(std::string_view candidate);
  // The name that a node with this target asks for: magic names lose their underscores, CamelCase becomes snake_case.
  static std::string target_to_name(const Argument& target);

  // The GraphModule whose graph this is; not owned.
  Module* owning_module() const { return owning_module_; }
  void set_owning_module(Module* m) { owning_module_ = m; }
  void set_observer(GraphObserver* observer) { observer_ = observer; }
  // Anything that travels with the graph and is shared by copies: calling convention, tracer class.
  const ObjectRef& extension() const { return extension_; }
  void set_extension(ObjectRef e) { extension_ = std::move(e); }

  // Called with each node's wrapper when the graph dies.
  void set_wrapper_release(void (*release)(void* wrapper)) { wrapper_release_ = release; }
  // Visits all foreign references: targets, arguments, annotations, meta, erased nodes included.
  void traverse(ObjectVisitor& visitor) const;
  // Every node ever created, in order of id, erased ones included. For bindings.
  size_t created() const;
  Node* node_by_id(uint32_t id) const;

  // The tracer behind `Proxy(node)`: appends to this graph.
  TracerBase& appending_tracer();
  // A counter that grows with every change of structure, so that caches know when they are stale.
  uint64_t version() const { return version_; }
  const WorkCounters& work() const { return work_; }
  size_t bytes() const;  // memory of nodes, edges and names

 private:
  friend class Node;
  void check_call(Opcode op, const Argument& target, std::string_view name) const;
  // Gives a node that was just linked its place in the order; spreads labels where none is free.
  void label(Node* n);
  void spread(Node* n);
  void keep_foreign(Graph& other);
  std::string_view unique_name(std::string_view candidate);
  std::string_view take_name(std::string_view name);
  void check_module_targets(const Module& module) const;

  std::unique_ptr<NodeStore> store_;
  std::unique_ptr<Namespace> names_;
  mutable std::unique_ptr<FindTable> find_table_;
  std::unique_ptr<TracerBase> appending_tracer_;
  Node* root_;
  size_t size_ = 0;
  bool names_may_repeat_ = false;  // a node was given a name that was taken
  InsertPoint insert_;
  Module* owning_module_ = nullptr;
  GraphObserver* observer_ = nullptr;
  ObjectRef extension_;
  void (*wrapper_release_)(void*) = nullptr;
  uint64_t version_ = 0;
  mutable WorkCounters work_;
};

}  // namespace fxjit::inline v0::fx
