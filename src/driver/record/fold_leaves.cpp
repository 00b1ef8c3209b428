#include <algorithm>
#include <unordered_set>

#include "driver/record/recorded_graph.h"
#include "support/errors.h"

namespace fxjit::inline v0::driver {
namespace {

using support::concat;

struct Leaf {
  std::string path, class_name;
  bool by_name;
  bool owns(std::string_view attribute) const {
    return attribute.size() > path.size() && attribute.starts_with(path) && attribute[path.size()] == '.';
  }
};

std::vector<Leaf> pick_leaves(const detail::ModuleTree& tree, const RecordOptions& options) {
  std::vector<Leaf> leaves;
  for (const detail::NamedSubmodule& m : tree.submodules) {
    const bool by_name = std::find(options.leaves.begin(), options.leaves.end(), m.path) != options.leaves.end();
    if (!by_name && !(options.is_leaf && options.is_leaf(m.path, m.class_name))) continue;
    // Parents come first.
    if (std::any_of(leaves.begin(), leaves.end(), [&](const Leaf& l) { return l.owns(m.path); })) continue;
    leaves.push_back({m.path, m.class_name, by_name});
  }
  for (const std::string& name : options.leaves) {
    if (std::none_of(tree.submodules.begin(), tree.submodules.end(), [&](const auto& m) { return m.path == name; }))
      throw NameError(concat("record: the module has no submodule '", name, "' that could be a leaf"));
  }
  return leaves;
}

// One leaf's stretch of the graph.
class Fold {
 public:
  Fold(RecordedGraph& g, const Leaf& leaf) : g_(g), leaf_(leaf) {}

  void run() {
    if (!find_stretch()) {
      if (!leaf_.by_name) return;
      throw TraceError(concat("no call uses a parameter or buffer of ", leaf_.path, " (", leaf_.class_name,
                              "): nothing tells which calls are its, so it cannot be a leaf"));
    }
    collect();
    const fx::GraphModuleRef module = make_module();
    replace(module);
  }

 private:
  bool find_stretch();
  void collect();
  void add_member(fx::Node* n);
  fx::GraphModuleRef make_module();
  void replace(const fx::GraphModuleRef& module);
  bool owned(const fx::Node* n) const { return n->op() == fx::Opcode::GetAttr && leaf_.owns(n->target_str()); }

  RecordedGraph& g_;
  const Leaf& leaf_;
  fx::Node* first_ = nullptr;
  fx::Node* last_ = nullptr;
  std::vector<fx::Node*> attributes_, members_, inputs_, outputs_;
  std::unordered_set<const fx::Node*> inside_, known_inputs_;
};

bool Fold::find_stretch() {
  for (fx::Node* n : g_.graph->nodes()) {
    if (!owned(n)) continue;
    attributes_.push_back(n);
    for (fx::Node* user : n->users()) {
      if (!first_ || *user < *first_) first_ = user;
      if (!last_ || *last_ < *user) last_ = user;
    }
  }
  return first_ != nullptr;
}

void Fold::add_member(fx::Node* n) {
  if (n->op() != fx::Opcode::CallFunction && n->op() != fx::Opcode::CallMethod) {
    throw TraceError(concat(leaf_.path, " cannot be a leaf: ", n->name(), " (", to_string(n->op()), " ",
                            n->target_str(), ") lies between the first and the last use of its parameters"));
  }
  for (fx::Node* input : n->all_input_nodes()) {
    if (inside_.contains(input) || owned(input)) continue;
    if (input->op() == fx::Opcode::GetAttr) {
      throw TraceError(concat(leaf_.path, " cannot be a leaf: between the first and the last use of its parameters ",
                              n->name(), " uses ", input->target_str(), ", which is another module's"));
    }
    if (known_inputs_.insert(input).second) inputs_.push_back(input);
  }
  members_.push_back(n);
  inside_.insert(n);
}

void Fold::collect() {
  for (fx::Node* n = first_;; n = n->next()) {
    if (n->op() != fx::Opcode::GetAttr) add_member(n);
    if (n == last_) break;
  }
  for (fx::Node* n : members_) {
    const auto users = n->users_vector();
    if (std::any_of(users.begin(), users.end(), [&](fx::Node* u) { return !inside_.contains(u); }))
      outputs_.push_back(n);
  }
  if (outputs_.empty())
    throw TraceError(concat(leaf_.path, " cannot be a leaf: nothing of what it computes is used behind it"));
}

fx::GraphModuleRef Fold::make_module() {
  fx::GraphPtr graph = fx::Graph::create();
  std::unordered_map<const fx::Node*, fx::Node*> map;
  for (const fx::Node* n : inputs_) map[n] = graph->placeholder(n->name());
  const auto mapped = [&](fx::Node* n) -> fx::Argument {
    fx::Node*& m = map[n];
    if (!m) m = graph->get_attr(n->target_str().substr(leaf_.path.size() + 1));
    return m;
  };
  for (const fx::Node* n : members_) {
    // The attributes first: node_copy appends.
    for (fx::Node* input : n->all_input_nodes()) mapped(input);
    map[n] = graph->node_copy(*n, mapped);
  }
  std::vector<fx::Argument> results;
  for (fx::Node* n : outputs_) results.push_back(mapped(n));
  graph->output(results.size() == 1 ? results[0] : fx::Argument::tuple(results));
  const fx::ModuleRef owner = fx::find_module(*g_.root, leaf_.path);
  FXJIT_CHECK(owner, "no module at ", leaf_.path);
  return fx::GraphModule::create(owner, std::move(graph), leaf_.class_name);
}

void Fold::replace(const fx::GraphModuleRef& module) {
  fx::set_attribute_at(*g_.root, leaf_.path, module, fx::AttributeKind::Module);
  std::vector<fx::Argument> args(inputs_.begin(), inputs_.end());
  const auto scope = g_.graph->inserting_before(last_->next());
  fx::Node* call = g_.graph->call_module(leaf_.path, fx::Argument::tuple(args));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    fx::Node* result = call;
    if (outputs_.size() > 1)
      result = g_.graph->call_function(fx::builtin_function("_operator.getitem"), fx::Argument::tuple({call, i}));
    outputs_[i]->replace_all_uses_with(result, [&](fx::Node* user) { return !inside_.contains(user); });
  }
  for (size_t i = members_.size(); i-- > 0;) g_.graph->erase_node(members_[i]);
  for (fx::Node* n : attributes_) g_.graph->erase_node(n);
}

}  // namespace

void fold_leaves(RecordedGraph& g, const detail::ModuleTree& tree, const RecordOptions& options) {
  for (const Leaf& leaf : pick_leaves(tree, options)) Fold(g, leaf).run();
}

}  // namespace fxjit::inline v0::driver
