// Replaces the places where a pattern occurs by another graph.
#pragma once

#include <functional>
#include <vector>

#include "fxjit/fx/graph_module.h"
#include "fxjit/fx/subgraph_matcher.h"
#include "fxjit/fx/symbolic_trace.h"

namespace fxjit::inline v0::fx {

struct ReplacedPatterns {
  Node* anchor;                       // of the pattern: where its first match began
  InternalMatch match;                // placeholders stand for what their nodes were replaced by meanwhile
  std::vector<Node*> replacements{};  // the nodes that were added
};

using MatchFilter = std::function<bool(const InternalMatch&, const Graph& original, const Graph& pattern)>;
// The graph that replaces this match. It may be a new one for each match and must live until the next call.
using ReplacementCallback =
    std::function<const Graph*(const InternalMatch&, const Graph& original, const Graph& pattern)>;

struct RewriteOptions {
  std::vector<MatchFilter> match_filters = {};  // a match is replaced if all of them say so
  bool ignore_literals = false;
  ReplacementCallback replacement_callback = {};  // instead of one replacement for all matches
  std::string node_name_match = {};
  MatcherOptions matcher = {};  // its normalize and match_attributes
};

// Replaces these matches of `pattern`, which must not overlap, one after the other: the copy of the replacement stands
// before the first user of the returned values (or behind them where they have none); placeholders of both graphs
// correspond by position. Linear in the matched and the added nodes. Matched nodes are erased. AssertionError if the
// numbers of placeholders or returned values differ.
FXJIT_API std::vector<ReplacedPatterns> replace_matches(Graph& graph, const Graph& pattern,
                                                        std::vector<InternalMatch> matches,
                                                        FunctionRef<const Graph*(const InternalMatch&)> replacement);

// Finds and replaces all non-overlapping matches and recompiles. Constants that the pattern takes as parameters match
// any constant. Attributes of `replacement` that the module lacks are shared with it, under their paths: Python's deep
// copies have no counterpart, as a Module of C++ need not be copyable (GraphModule::copy shares as well). Whoever wants
// a parameter of its own for the module gives the replacement one that nothing else holds.
FXJIT_API std::vector<ReplacedPatterns> replace_pattern(GraphModule& module, const GraphModule& pattern,
                                                        const GraphModule* replacement,
                                                        const RewriteOptions& options = {});

// The same for functions over Proxies.
template <class Pattern, class Replacement>
  requires(detail::proxy_arity<Pattern>() > 0 && detail::proxy_arity<Replacement>() > 0)
std::vector<ReplacedPatterns> replace_pattern(GraphModule& module, Pattern pattern, Replacement replacement,
                                              const RewriteOptions& options = {}) {
  const GraphModuleRef from = symbolic_trace(std::move(pattern)), to = symbolic_trace(std::move(replacement));
  return replace_pattern(module, *from, to.get(), options);
}

}  // namespace fxjit::inline v0::fx
