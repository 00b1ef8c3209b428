#include "passes/grouping.h"

#include <algorithm>

namespace fxjit::inline v0::passes {
namespace {

using fx::Node;

// Edges that one check of a merge may walk. Real groups need a few dozen; a graph made to defeat it loses some fusion.
constexpr int kMergeBudget = 512;

// The graph with groups contracted to units. Each unit has a level above those of all units that it depends on: a path
// from one unit to another only passes levels in between, which bounds the search for cycles.
class Groups {
 public:
  Groups(const fx::Graph& graph, const FusionGraph& fusion)
      : graph_(graph), fusion_(fusion), parent_(fusion.size()), units_(fusion.size()) {}

  std::vector<std::vector<Node*>> run();

 private:
  struct Unit {
    std::vector<Node*> nodes;
    IterationSpace space;
    int level = 0;
  };
  using Levels = std::unordered_map<uint32_t, int>;

  uint32_t find(uint32_t id) const {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }
  uint32_t unit_of(const Node* n) const { return find(n->id()); }
  bool is_group(uint32_t unit) const { return fusion_.is_member(*units_[unit].nodes[0]); }

  void add(Node* n);
  void join_operands(uint32_t unit);
  void join_siblings();
  bool try_merge(uint32_t a, uint32_t b);
  bool has_only_plain_edges(uint32_t a, uint32_t b) const;
  bool makes_cycle(uint32_t low, uint32_t high, int& budget) const;
  bool raise(uint32_t low, uint32_t high, int level, int& budget, Levels& raised) const;

  const fx::Graph& graph_;
  const FusionGraph& fusion_;
  mutable std::vector<uint32_t> parent_;  // by node id
  std::vector<Unit> units_;               // by id of the unit's root
};

void Groups::add(Node* n) {
  Unit& unit = units_[n->id()];
  parent_[n->id()] = n->id();
  unit.nodes.push_back(n);
  unit.space = fusion_.space(*n);
  for (const FusionEdge& e : fusion_.inputs(*n)) unit.level = std::max(unit.level, units_[unit_of(e.source)].level + 1);
}

bool Groups::has_only_plain_edges(uint32_t a, uint32_t b) const {
  for (uint32_t reader : {a, b})
    for (const Node* n : units_[reader].nodes)
      for (const FusionEdge& e : fusion_.inputs(*n)) {
        uint32_t source = unit_of(e.source);
        if (!e.plain && (source == a || source == b)) return false;
      }
  return true;
}

// A path from `low` to `high` through other units. There is none the other way, by the levels.
bool Groups::makes_cycle(uint32_t low, uint32_t high, int& budget) const {
  std::vector<uint32_t> work{low};
  std::unordered_map<uint32_t, bool> seen;
  while (!work.empty()) {
    uint32_t at = work.back();
    work.pop_back();
    for (const Node* n : units_[at].nodes)
      for (const Node* user : fusion_.users(*n)) {
        if (--budget < 0) return true;
        uint32_t next = unit_of(user);
        if (next == low || (at == low && next == high)) continue;
        if (next == high) return true;
        // Users that are not in any unit yet come later in the program than all that is asked about.
        if (units_[next].nodes.empty() || units_[next].level >= units_[high].level) continue;
        if (!std::exchange(seen[next], true)) work.push_back(next);
      }
  }
  return false;
}

// The levels that must rise when `low` is put on `level`, the level of `high`.
bool Groups::raise(uint32_t low, uint32_t high, int level, int& budget, Levels& raised) const {
  std::vector<uint32_t> work;
  auto visit = [&](uint32_t unit, int at) {
    for (const Node* n : units_[unit].nodes)
      for (const Node* user : fusion_.users(*n)) {
        if (--budget < 0) return false;
        uint32_t next = unit_of(user);
        if (next == low || next == high || units_[next].nodes.empty()) continue;
        auto it = raised.find(next);
        int now = it == raised.end() ? units_[next].level : it->second;
        if (now > at) continue;
        raised[next] = at + 1;
        work.push_back(next);
      }
    return true;
  };
  if (!visit(low, level) || !visit(high, level)) return false;
  while (!work.empty()) {
    uint32_t unit = work.back();
    work.pop_back();
    if (!visit(unit, raised[unit])) return false;
  }
  return true;
}

bool Groups::try_merge(uint32_t a, uint32_t b) {
  if (a == b) return true;
  if (units_[a].nodes.size() + units_[b].nodes.size() > kMaxGroup) return false;
  std::optional<IterationSpace> space = unify(units_[a].space, units_[b].space);
  if (!space || !has_only_plain_edges(a, b)) return false;
  uint32_t low = units_[a].level <= units_[b].level ? a : b, high = low == a ? b : a;
  int level = units_[high].level, budget = kMergeBudget;
  Levels raised;
  if (makes_cycle(low, high, budget) || !raise(low, high, level, budget, raised)) return false;
  for (auto [unit, to] : raised) units_[unit].level = to;
  Unit gone = std::move(units_[low]);
  units_[low] = {};
  Unit& kept = units_[high];
  kept.nodes.insert(kept.nodes.end(), gone.nodes.begin(), gone.nodes.end());
  kept.space = std::move(*space);
  parent_[low] = high;
  return true;
}

void Groups::join_operands(uint32_t unit) {
  std::vector<uint32_t> sources;
  for (const Node* n : units_[unit].nodes)
    for (const FusionEdge& e : fusion_.inputs(*n))
      if (fusion_.is_member(*e.source)) sources.push_back(unit_of(e.source));
  for (uint32_t s : sources) try_merge(find(s), find(unit));
}

// Groups that read one operand in full: it is loaded once.
void Groups::join_siblings() {
  for (Node* n : graph_.nodes()) {
    std::vector<uint32_t> readers;
    for (const Node* user : fusion_.users(*n)) {
      uint32_t unit = unit_of(user);
      if (!is_group(unit) || std::find(readers.begin(), readers.end(), unit) != readers.end()) continue;
      readers.push_back(unit);
      if (readers.size() == kMaxGroup) break;
    }
    if (readers.size() < 2 || !n->tensor_type()) continue;
    for (size_t i = 1; i < readers.size(); ++i) {
      uint32_t a = find(readers[i - 1]), b = find(readers[i]);
      const IterationSpace& space = units_[a].space;
      if (a != b && space.dims == units_[b].space.dims && fusion_.spans(*n, space)) try_merge(a, b);
    }
  }
}

std::vector<std::vector<Node*>> Groups::run() {
  for (uint32_t id = 0; id < parent_.size(); ++id) parent_[id] = id;
  std::vector<Node*> members;
  for (Node* n : graph_.nodes()) {
    if (fusion_.is_view(*n)) continue;
    add(n);
    if (!fusion_.is_member(*n)) continue;
    members.push_back(n);
    join_operands(unit_of(n));
  }
  // Once more: an operator on rows joins only when the reduction has come.
  for (Node* n : members) join_operands(unit_of(n));
  join_siblings();
  std::vector<std::vector<Node*>> groups;
  for (Node* n : members) {
    std::vector<Node*>& nodes = units_[unit_of(n)].nodes;
    std::sort(nodes.begin(), nodes.end(), [](const Node* x, const Node* y) { return *x < *y; });
    if (nodes[0] == n) groups.push_back(nodes);
  }
  return groups;
}

}  // namespace

std::vector<std::vector<Node*>> find_groups(const fx::Graph& graph, const FusionGraph& fusion) {
  return Groups(graph, fusion).run();
}

}  // namespace fxjit::inline v0::passes
