// One run of a SubgraphMatcher over a graph.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "fxjit/fx/subgraph_matcher.h"

namespace fxjit::inline v0::fx {

// Depth first over pattern and graph together, from the anchors to their inputs. What is bound on the way is kept on a
// trail, so that going back costs what was done.
class MatchSearch {
 public:
  MatchSearch(SubgraphMatcher& matcher, const Graph& graph, std::string_view node_name_match);
  std::vector<InternalMatch> run();

 private:
  using Pair = std::pair<Argument, Argument>;  // of pattern and graph

  void extend(size_t anchor);
  // The nodes that an anchor may match, in program order. `led_to` holds them where they follow from what is bound.
  const std::vector<Node*>& candidates(size_t anchor, std::vector<Node*>& led_to);
  bool nodes_equal(Node* pn, Node* gn, std::string_view name = {});
  bool match_from(Node* anchor, Node* gn);
  bool match_values(const Argument& p, const Argument& g);
  bool match_node(Node* pn, Node* gn, std::string_view name);
  bool match_literal(const Argument& p, const Argument& g);
  bool push_arguments(const Node& pn, const Node& gn);
  void push_items(const Argument& p, const Argument& g);
  void bind(Node* pn, const Argument& value);
  void undo(size_t mark);
  bool overlaps(size_t end) const;
  bool is_contained() const;
  bool is_acyclic();
  void complete();

  SubgraphMatcher& matcher_;
  const Graph& graph_;
  std::string_view name_;
  bool sorted_;
  std::vector<Argument> bound_;  // by id of the pattern node
  std::vector<bool> is_bound_;   // by id of the pattern node
  std::vector<Node*> trail_;     // pattern nodes in the order in which they were bound
  std::vector<bool> matched_;    // by id: nodes that something is bound to
  std::vector<bool> taken_;      // by id: nodes of earlier matches
  std::vector<Pair> pending_;
  std::vector<std::optional<std::vector<Node*>>> all_candidates_;  // per anchor, where they had to be looked for
  std::vector<InternalMatch> found_;
};

}  // namespace fxjit::inline v0::fx
