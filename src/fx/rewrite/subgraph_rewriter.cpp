#include "fxjit/fx/subgraph_rewriter.h"

#include <algorithm>
#include <unordered_map>

#include "fx/rewrite/attributes.h"
#include "fxjit/fx/topology.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

class Rewriter {
 public:
  Rewriter(Graph& graph, const Graph& pattern) : graph_(graph), pattern_(pattern) {}

  ReplacedPatterns replace(InternalMatch match, const Graph& replacement) {
    NodeMap values;
    map_placeholders(match, replacement, values);
    Node* position = insert_position(match);
    std::optional<Argument> result;
    {
      InsertScope scope = graph_.inserting_before(position);
      result = graph_.graph_copy(replacement, values);
    }
    ReplacedPatterns done{match.anchors.at(0), {}};
    for (Node* n : replacement.nodes()) {
      const auto it = values.find(n);
      if (n->op() == Opcode::Placeholder || it == values.end()) continue;
      done.replacements.push_back(it->second.as_node());
    }
    note_order(done.replacements, position);
    connect(match, result);
    for (Node* n = pattern_.root()->prev(); n != pattern_.root(); n = n->prev()) {
      if (n->op() == Opcode::Placeholder || n->op() == Opcode::Output) continue;
      if (const Argument* gn = match.find(n)) graph_.erase_node(gn->as_node());
    }
    done.match = std::move(match);
    return done;
  }

  // A value that the replacement reads may stand behind the first user of what it returns.
  bool needs_sorting() const { return needs_sorting_; }

 private:
  // What stands for a node of the graph after the replacements so far.
  Argument current(const Argument& value) const {
    const Argument* found = &value;
    for (Node* n = found->node_or_null(); n; n = found->node_or_null()) {
      const auto it = changed_.find(n);
      if (it == changed_.end() || it->second == Argument(n)) break;
      found = &it->second;
    }
    return *found;
  }

  void map_placeholders(InternalMatch& match, const Graph& replacement, NodeMap& values) {
    const std::vector<Node*> placeholders = replacement.find_nodes(Opcode::Placeholder);
    if (placeholders.size() != match.placeholder_nodes.size()) {
      throw AssertionError(concat("Placeholder count mismatch: ", match.placeholder_nodes.size(), " vs ",
                                  placeholders.size(), ": pattern and replacement need the same parameters"));
    }
    for (auto& [pn, value] : match.nodes_map) {
      if (pn->op() == Opcode::Placeholder) value = current(value);
    }
    for (size_t i = 0; i < placeholders.size(); ++i) {
      match.placeholder_nodes[i] = current(match.placeholder_nodes[i]);
      values.emplace(placeholders[i], match.placeholder_nodes[i]);
    }
  }

  // The node before which the replacement goes.
  static Node* insert_position(const InternalMatch& match) {
    Node *first_user = nullptr, *last = nullptr;
    for (Node* n : match.returning_nodes) {
      if (!last || *last < *n) last = n;
      for (Node* user : n->users()) {
        if (!first_user || *user < *first_user) first_user = user;
      }
    }
    if (first_user) return first_user;
    if (!last || last->next()->is_root()) throw AssertionError("The insert point can't be None");
    return last->next();
  }

  void note_order(const std::vector<Node*>& added, Node* position) {
    for (Node* n : added) {
      for (Node* input : n->all_input_nodes()) needs_sorting_ |= *position < *input;
    }
  }

  void connect(const InternalMatch& match, const std::optional<Argument>& result) {
    const bool one = !result || !result->is_aggregate();
    const size_t count = !result ? 0 : one ? 1 : result->size();
    if (count != match.returning_nodes.size()) {
      throw AssertionError(concat("Returning nodes count mismatch: ", match.returning_nodes.size(), " vs ", count));
    }
    for (size_t i = 0; i < count; ++i) {
      Node* gn = match.returning_nodes[i];
      const Argument& made = one ? *result : (*result)[i];
      if (made.node_or_null() == gn) continue;
      gn->replace_all_uses_with(made);
      changed_[gn] = made;
    }
  }

  Graph& graph_;
  const Graph& pattern_;
  std::unordered_map<const Node*, Argument> changed_;
  bool needs_sorting_ = false;
};

// Modules that are not used any more go; what the new nodes read comes from the replacement.
void replace_attributes(GraphModule& module, const GraphModule& replacement) {
  module.delete_all_unused_submodules();
  for (Node* n : module.graph().nodes()) {
    if (n->op() != Opcode::CallModule && n->op() != Opcode::GetAttr) continue;
    const std::string_view path = n->target_str();
    if (find_attribute(module, path)) continue;
    const ObjectRef value = find_attribute(replacement, path);
    if (!value) {
      throw RuntimeError(concat("Attempted to create a \"", to_string(n->op()),
                                "\" node during subgraph rewriting with target ", path,
                                ", but the referenced attribute does not exist in the replacement GraphModule"));
    }
    set_attribute_at(module, path, value, registered_kind(*value));
  }
}

}  // namespace

std::vector<ReplacedPatterns> replace_matches(Graph& graph, const Graph& pattern, std::vector<InternalMatch> matches,
                                              FunctionRef<const Graph*(const InternalMatch&)> replacement) {
  Rewriter rewriter(graph, pattern);
  std::vector<ReplacedPatterns> done;
  for (InternalMatch& match : matches) {
    const Graph* with = replacement(match);
    if (!with) throw AssertionError("Must provide either a replacement GraphModule or a replacement callback");
    done.push_back(rewriter.replace(std::move(match), *with));
  }
  if (rewriter.needs_sorting()) stable_topological_sort(graph);
  return done;
}

std::vector<ReplacedPatterns> replace_pattern(GraphModule& module, const GraphModule& pattern,
                                              const GraphModule* replacement, const RewriteOptions& options) {
  MatcherOptions matching = options.matcher;
  matching.match_output = matching.match_placeholder = false;
  matching.remove_overlapping_matches = true;
  matching.ignore_literals = options.ignore_literals;
  Graph& graph = module.graph();
  std::vector<InternalMatch> matches =
      SubgraphMatcher(pattern.graph(), std::move(matching)).match(graph, options.node_name_match);
  std::erase_if(matches, [&](const InternalMatch& m) {
    return !std::ranges::all_of(options.match_filters,
                                [&](const auto& keep) { return keep(m, graph, pattern.graph()); });
  });
  auto done = replace_matches(graph, pattern.graph(), std::move(matches), [&](const InternalMatch& m) {
    if (options.replacement_callback) return options.replacement_callback(m, graph, pattern.graph());
    return replacement ? static_cast<const Graph*>(&replacement->graph()) : nullptr;
  });
  if (replacement) replace_attributes(module, *replacement);
  module.recompile();
  if (replacement) graph.lint();
  return done;
}

}  // namespace fxjit::inline v0::fx
