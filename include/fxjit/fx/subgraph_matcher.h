// Finds the places where a small graph, the pattern, occurs in a large one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::fx {

struct MatcherOptions {
  // The pattern's output node must match the graph's; without it matching starts at the nodes that it returns.
  bool match_output = false;
  // Placeholders match placeholders only; without it they match any node, and any constant where they are arguments.
  bool match_placeholder = false;
  // Of matches with common nodes only the first is returned.
  bool remove_overlapping_matches = true;
  // Constants in the pattern match any constant.
  bool ignore_literals = false;

  // All arguments of a call as a Dict in the order of the callee's parameters, defaults filled in; None where they
  // cannot be known. Asked where pattern and graph spell a call differently (by keyword or by position, a default
  // given or not). By default Callable::signature() is used.
  std::function<Argument(const Node&)> normalize = {};
  // Whether get_attr nodes read attributes that may stand for each other. By default: both tensors, or the same object.
  std::function<bool(const Node& pattern, const Node& node)> match_attributes = {};
};

// One place where the pattern was found.
struct FXJIT_API InternalMatch {
  std::vector<Node*> anchors;                           // of the pattern: where matching began
  std::vector<std::pair<Node*, Argument>> nodes_map;    // pattern node → node, or constant for a placeholder
  std::vector<Argument> placeholder_nodes;              // what the pattern's placeholders stand for, in order
  std::vector<Node*> returning_nodes;                   // the nodes that the pattern returns
  std::vector<std::pair<std::string, Node*>> name_map;  // SubgraphMatcherWithNameNodeMap only

  // What a pattern node stands for; null if it has no part in the match.
  const Argument* find(const Node* pattern_node) const;
};

class FXJIT_API SubgraphMatcher {
 public:
  // The pattern must outlive the matcher and stay as it is. ValueError for an empty pattern, AssertionError for one
  // with nodes that nobody uses.
  explicit SubgraphMatcher(const Graph& pattern, MatcherOptions options = {});
  ~SubgraphMatcher();
  SubgraphMatcher(SubgraphMatcher&&) noexcept;

  // All matches, in the program order of their first anchors. A match is self-contained (values other than the
  // returned ones are used inside only) and could become one node without making a cycle. With `node_name_match` an
  // anchor also matches nodes whose name contains it. Linear for patterns whose returned values hang together.
  std::vector<InternalMatch> match(const Graph& graph, std::string_view node_name_match = {});

  const Graph& pattern() const { return *pattern_; }
  const std::vector<Node*>& anchors() const { return anchors_; }
  // Nodes and edges compared so far.
  uint64_t steps() const { return steps_; }

 private:
  friend class MatchSearch;
  const Graph* pattern_;
  MatcherOptions options_;
  std::vector<Node*> placeholders_, returning_, anchors_;
  std::vector<bool> is_returning_;           // by id
  std::vector<std::vector<Node*>> lead_in_;  // per anchor: a chain of users that leads to it from an earlier match
  uint64_t steps_ = 0;
};

// Remembers names for nodes of the pattern: its last output is a dict from names to nodes, which is taken off.
FXJIT_API std::vector<std::pair<std::string, Node*>> split_name_node_map(Graph& pattern);

}  // namespace fxjit::inline v0::fx
