#include "fxjit/fx/subgraph_matcher.h"

#include <algorithm>

#include "fx/rewrite/match_search.h"
#include "fxjit/fx/module.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

const Argument* InternalMatch::find(const Node* pattern_node) const {
  for (const auto& [pn, value] : nodes_map) {
    if (pn == pattern_node) return &value;
  }
  return nullptr;
}

namespace {

bool is_tensor(const Object& o) {
  return o.object_kind() == ObjectKind::Tensor || o.object_kind() == ObjectKind::Parameter;
}

bool same_attribute(const Node& pn, const Node& gn) {
  const Module *pattern = pn.graph().owning_module(), *module = gn.graph().owning_module();
  const ObjectRef a = pattern ? find_attribute(*pattern, pn.target_str()) : nullptr;
  const ObjectRef b = module ? find_attribute(*module, gn.target_str()) : nullptr;
  if (!a || !b) return !pattern && !module && pn.target() == gn.target();
  if (is_tensor(*a)) return a->object_kind() == b->object_kind();
  return a->identity() == b->identity();
}

Argument bind_to_signature(const Node& n) {
  if (n.op() != Opcode::CallFunction) return {};
  const std::optional<Signature> signature = n.callable().signature();
  if (!signature) return {};
  std::vector<DictEntry> values;
  size_t used = 0;
  for (const Parameter& p : *signature) {
    if (p.kind == ParameterKind::VarPositional || p.kind == ParameterKind::VarKeyword) return {};
    const Argument* given = n.kwargs().find(Argument(p.name));
    if (p.kind == ParameterKind::Positional && values.size() < n.args().size()) given = &n.arg(values.size());
    used += given != nullptr;
    if (!given && !p.default_value) return {};
    values.push_back({Argument(p.name), given ? *given : *p.default_value});
  }
  return used == n.args().size() + n.kwargs().size() ? Argument::dict(values) : Argument();
}

// The chain of users by which `anchor` is reached from a node that is matched before it: from a computed value rather
// than from a placeholder, which may stand for a constant or for something with many users. Empty if there is none.
std::vector<Node*> find_lead_in(Node* anchor, const std::vector<bool>& covered) {
  std::vector<Node*> order{anchor};
  std::vector<Node*> user_of(covered.size());
  const auto chain_to = [&](Node* start) {
    std::vector<Node*> chain;
    for (Node* n = start; n; n = user_of[n->id()]) chain.push_back(n);
    return chain;
  };
  Node* placeholder = nullptr;
  std::vector<bool> seen(covered.size());
  seen[anchor->id()] = true;
  for (size_t at = 0; at < order.size(); ++at) {
    Node* n = order[at];
    if (covered[n->id()]) {
      if (n->op() != Opcode::Placeholder) return chain_to(n);
      if (!placeholder) placeholder = n;
      continue;
    }
    for (Node* input : n->all_input_nodes()) {
      if (seen[input->id()]) continue;
      seen[input->id()] = true;
      user_of[input->id()] = n;
      order.push_back(input);
    }
  }
  return placeholder ? chain_to(placeholder) : std::vector<Node*>();
}

void cover(Node* anchor, std::vector<bool>& covered) {
  std::vector<Node*> pending{anchor};
  while (!pending.empty()) {
    Node* n = pending.back();
    pending.pop_back();
    if (covered[n->id()]) continue;
    covered[n->id()] = true;
    for (Node* input : n->all_input_nodes()) pending.push_back(input);
  }
}

}  // namespace

SubgraphMatcher::SubgraphMatcher(const Graph& pattern, MatcherOptions options)
    : pattern_(&pattern), options_(std::move(options)), is_returning_(pattern.created()) {
  if (!options_.normalize) options_.normalize = bind_to_signature;
  if (!options_.match_attributes) options_.match_attributes = same_attribute;
  if (pattern.size() == 0) throw ValueError("SubgraphMatcher cannot be initialized with an empty pattern");
  for (Node* n : pattern.nodes()) {
    if (n->op() != Opcode::Output && n->num_users() == 0 && !n->is_impure()) {
      throw AssertionError(
          concat("SubgraphMatcher cannot be initialized with an pattern with dead code: nobody uses ", n->name()));
    }
    if (n->op() == Opcode::Placeholder) placeholders_.push_back(n);
  }
  Node* output = pattern.output_node();
  if (!output) throw ValueError("SubgraphMatcher needs a pattern with an output node");
  for (Node* n : output->all_input_nodes()) {
    returning_.push_back(n);
    is_returning_[n->id()] = true;
    // What is used by the output alone is a sink of the pattern.
    if (!options_.match_output && n->num_users() == 1) anchors_.push_back(n);
  }
  if (options_.match_output) anchors_ = {output};
  std::vector<bool> covered(pattern.created());
  for (Node* anchor : anchors_) {
    lead_in_.push_back(find_lead_in(anchor, covered));
    cover(anchor, covered);
  }
}

SubgraphMatcher::~SubgraphMatcher() = default;
SubgraphMatcher::SubgraphMatcher(SubgraphMatcher&&) noexcept = default;

std::vector<InternalMatch> SubgraphMatcher::match(const Graph& graph, std::string_view node_name_match) {
  MatchSearch search(*this, graph, node_name_match);
  return search.run();
}

std::vector<std::pair<std::string, Node*>> split_name_node_map(Graph& pattern) {
  Node* output = pattern.output_node();
  const Argument result = output && output->args().size() ? output->arg(0) : Argument();
  if (!result.is(ArgumentKind::Tuple) && !result.is(ArgumentKind::List)) {
    throw AssertionError("Expecting the pattern graph to return a tuple");
  }
  if (result.size() < 2) throw AssertionError("Expecting the pattern graph to have at least two outputs");
  const auto items = result.items();
  if (!items.back().is(ArgumentKind::Dict)) {
    throw AssertionError("Expecting the input graph to have a dict output as the last element");
  }
  std::vector<std::pair<std::string, Node*>> names;
  for (const DictEntry& entry : items.back().entries()) {
    if (!entry.key.is_str() || !entry.value.is_node()) {
      throw AssertionError("the dict that the pattern graph returns last maps names to nodes");
    }
    names.emplace_back(entry.key.as_str(), entry.value.as_node());
  }
  output->set_args(Argument::tuple({Argument::list(items.first(items.size() - 1))}));
  return names;
}

}  // namespace fxjit::inline v0::fx
