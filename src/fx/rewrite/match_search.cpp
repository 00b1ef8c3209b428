#include "fx/rewrite/match_search.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "fx/rewrite/reachable.h"
#include "fxjit/fx/topology.h"

namespace fxjit::inline v0::fx {

namespace {

bool is_sequence(const Argument& a) {
  return a.is(ArgumentKind::List) || a.is(ArgumentKind::Tuple) || a.is(ArgumentKind::NamedTuple);
}

// Dicts and slices are compared part by part where nodes are inside.
bool is_alike(const Argument& a, const Argument& b) {
  if (a.kind() != b.kind() || !a.is_aggregate() || a.size() != b.size()) return false;
  if (!a.contains_node() && !b.contains_node()) return false;
  if (!a.is(ArgumentKind::Dict)) return true;
  return std::ranges::equal(a.entries(), b.entries(), {}, &DictEntry::key, &DictEntry::key);
}

bool is_computed(const Node* pn) { return pn->op() != Opcode::Placeholder && pn->op() != Opcode::Output; }

bool same_keys(const Argument& a, const Argument& b) {
  return std::ranges::equal(a.entries(), b.entries(), {}, &DictEntry::key, &DictEntry::key);
}

}  // namespace

MatchSearch::MatchSearch(SubgraphMatcher& matcher, const Graph& graph, std::string_view node_name_match)
    : matcher_(matcher),
      graph_(graph),
      name_(node_name_match),
      sorted_(is_topologically_sorted(graph)),
      bound_(matcher.pattern().created()),
      is_bound_(matcher.pattern().created()),
      matched_(graph.created()),
      taken_(graph.created()),
      all_candidates_(matcher.anchors_.size()) {}

std::vector<InternalMatch> MatchSearch::run() {
  if (!matcher_.anchors_.empty()) extend(0);
  return std::move(found_);
}

void MatchSearch::extend(size_t anchor) {
  if (anchor == matcher_.anchors_.size()) return complete();
  const size_t mark = trail_.size();
  std::vector<Node*> led_to;
  for (Node* gn : candidates(anchor, led_to)) {
    if (match_from(matcher_.anchors_[anchor], gn)) extend(anchor + 1);
    undo(mark);
    // The match just made took what this level is built on: whatever follows here would overlap with it.
    if (overlaps(mark)) return;
  }
}

const std::vector<Node*>& MatchSearch::candidates(size_t anchor, std::vector<Node*>& led_to) {
  Node* pn = matcher_.anchors_[anchor];
  const std::vector<Node*>& lead = matcher_.lead_in_[anchor];
  if (name_.empty() && !lead.empty() && is_bound_[lead[0]->id()]) {
    if (Node* start = bound_[lead[0]->id()].node_or_null()) {
      led_to = {start};
      for (Node* step : lead | std::views::drop(1)) {
        std::unordered_set<const Node*> seen;
        std::vector<Node*> next;
        for (Node* n : led_to) {
          for (Node* user : n->users()) {
            if (nodes_equal(step, user) && seen.insert(user).second) next.push_back(user);
          }
        }
        led_to = std::move(next);
      }
      std::ranges::sort(led_to, [](Node* a, Node* b) { return *a < *b; });
      return led_to;
    }
  }
  std::optional<std::vector<Node*>>& all = all_candidates_[anchor];
  if (!all) {
    all.emplace();
    for (Node* gn : graph_.nodes()) {
      if (nodes_equal(pn, gn, name_)) all->push_back(gn);
    }
  }
  return *all;
}

bool MatchSearch::nodes_equal(Node* pn, Node* gn, std::string_view name) {
  ++matcher_.steps_;
  if (!matcher_.options_.match_placeholder && pn->op() == Opcode::Placeholder) return true;
  if (!name.empty() && gn->name().find(name) != std::string_view::npos) return true;
  if (pn->op() != gn->op()) return false;
  if (!is_computed(pn)) return true;
  if (pn->op() == Opcode::GetAttr) return matcher_.options_.match_attributes(*pn, *gn);
  return pn->target() == gn->target();
}

bool MatchSearch::match_from(Node* anchor, Node* gn) {
  pending_.clear();
  if (is_bound_[anchor->id()]) return bound_[anchor->id()].node_or_null() == gn;
  if (!match_node(anchor, gn, name_)) return false;
  while (!pending_.empty()) {
    const Pair pair = std::move(pending_.back());
    pending_.pop_back();
    if (!match_values(pair.first, pair.second)) return false;
  }
  return true;
}

bool MatchSearch::match_values(const Argument& p, const Argument& g) {
  ++matcher_.steps_;
  if (p.is_node() && g.is_node()) return match_node(p.as_node(), g.as_node(), {});
  if (is_sequence(p) && is_sequence(g)) {
    if (p.size() != g.size()) return false;
    push_items(p, g);
    return true;
  }
  if (is_alike(p, g)) {
    push_items(p, g);
    return true;
  }
  return match_literal(p, g) || matcher_.options_.ignore_literals;
}

bool MatchSearch::match_node(Node* pn, Node* gn, std::string_view name) {
  if (is_bound_[pn->id()]) return bound_[pn->id()].node_or_null() == gn;
  if (matched_[gn->id()] || !nodes_equal(pn, gn, name)) return false;
  if (taken_[gn->id()] && is_computed(pn)) return false;
  bind(pn, gn);
  return pn->op() == Opcode::Placeholder || push_arguments(*pn, *gn);
}

bool MatchSearch::match_literal(const Argument& p, const Argument& g) {
  Node* pn = p.node_or_null();
  if (!pn) return !g.is_node() && p == g;
  if (pn->op() != Opcode::Placeholder) return false;
  if (is_bound_[pn->id()]) return bound_[pn->id()] == g;
  bind(pn, g);
  return true;
}

bool MatchSearch::push_arguments(const Node& pn, const Node& gn) {
  const bool spelled_alike = pn.args().size() == gn.args().size() && same_keys(pn.kwargs(), gn.kwargs());
  if (spelled_alike) {
    if (pn.kwargs().size()) push_items(pn.kwargs(), gn.kwargs());
    push_items(pn.args(), gn.args());
    return true;
  }
  if (pn.op() == Opcode::Output || pn.op() != gn.op()) return false;
  const Argument p = matcher_.options_.normalize(pn);
  const Argument g = p.is_none() ? Argument() : matcher_.options_.normalize(gn);
  if (g.is_none() || !same_keys(p, g)) return false;
  push_items(p, g);
  return true;
}

// The last one first: pending_ is a stack.
void MatchSearch::push_items(const Argument& p, const Argument& g) {
  for (size_t i = p.size(); i-- > 0;) {
    if (p.is(ArgumentKind::Dict)) {
      pending_.emplace_back(p.entries()[i].value, g.entries()[i].value);
    } else {
      pending_.emplace_back(p[i], g[i]);
    }
  }
}

void MatchSearch::bind(Node* pn, const Argument& value) {
  bound_[pn->id()] = value;
  is_bound_[pn->id()] = true;
  trail_.push_back(pn);
  if (Node* gn = value.node_or_null()) matched_[gn->id()] = true;
}

void MatchSearch::undo(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const uint32_t id = trail_.back()->id();
    if (Node* gn = bound_[id].node_or_null()) matched_[gn->id()] = false;
    bound_[id] = {};
    is_bound_[id] = false;
  }
}

// Whether one of the first `end` bindings is part of an earlier match.
bool MatchSearch::overlaps(size_t end) const {
  for (size_t i = 0; i < end; ++i) {
    Node* gn = bound_[trail_[i]->id()].node_or_null();
    if (gn && is_computed(trail_[i]) && taken_[gn->id()]) return true;
  }
  return false;
}

// Only what the pattern returns may be used elsewhere.
bool MatchSearch::is_contained() const {
  std::unordered_set<const Node*> inside;
  for (Node* pn : trail_) {
    if (pn->op() != Opcode::Placeholder) inside.insert(bound_[pn->id()].as_node());
  }
  for (Node* pn : trail_) {
    if (pn->op() == Opcode::Placeholder || matcher_.is_returning_[pn->id()]) continue;
    for (Node* user : bound_[pn->id()].as_node()->users()) {
      ++matcher_.steps_;
      if (!inside.contains(user)) return false;
    }
  }
  return true;
}

bool MatchSearch::is_acyclic() {
  std::vector<Node*> nodes;
  for (Node* pn : trail_) {
    if (is_computed(pn)) nodes.push_back(bound_[pn->id()].as_node());
  }
  const std::unordered_set<const Node*> inside(nodes.begin(), nodes.end());
  const Node* last = nullptr;  // the last that a path from outside can enter
  for (Node* n : nodes) {
    for (Node* input : n->all_input_nodes()) {
      if (!inside.contains(input) && (!last || *last < *n)) last = n;
    }
  }
  if (!last) return true;
  return !reenters(nodes, inside, sorted_ ? last : nullptr, matcher_.steps_);
}

void MatchSearch::complete() {
  for (Node* pn : matcher_.placeholders_) {
    if (!is_bound_[pn->id()]) return;
  }
  for (Node* pn : matcher_.returning_) {
    if (!is_bound_[pn->id()] || !bound_[pn->id()].is_node()) return;
  }
  if (!is_contained() || !is_acyclic()) return;
  InternalMatch match;
  match.anchors = matcher_.anchors_;
  for (Node* pn : trail_) {
    Node* gn = bound_[pn->id()].node_or_null();
    match.nodes_map.emplace_back(pn, bound_[pn->id()]);
    if (gn && is_computed(pn) && matcher_.options_.remove_overlapping_matches) taken_[gn->id()] = true;
  }
  for (Node* pn : matcher_.placeholders_) match.placeholder_nodes.push_back(bound_[pn->id()]);
  for (Node* pn : matcher_.returning_) match.returning_nodes.push_back(bound_[pn->id()].as_node());
  found_.push_back(std::move(match));
}

}  // namespace fxjit::inline v0::fx
