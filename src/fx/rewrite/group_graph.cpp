#include "fx/rewrite/group_graph.h"

#include <algorithm>

namespace fxjit::inline v0::fx {

void GroupGraph::add_users(Node* n, BitSet& reaches, BitSet* beyond) const {
  for (Node* user : n->users()) {
    const BitSet& further = behind(user);
    reaches.add(further);
    if (beyond) beyond->add(further);
    if (const size_t slot = slot_of_[user->id()]; slot != kNoGroup) reaches.set(slot);
  }
}

size_t GroupGraph::add_group(Node* n) {
  size_t slot = groups_.size();
  if (free_.empty()) {
    groups_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Group made{next_id_, next_id_, {n}, {}, {}};
  ++next_id_;
  add_users(n, made.reaches, &made.beyond);
  groups_[slot] = std::move(made);
  slot_of_[n->id()] = slot;
  live_.push_back(slot);
  newest_ = slot;
  return slot;
}

// What a group would have beyond if the vertex `skipped` were part of it.
void GroupGraph::beyond_without(const Group& g, size_t skipped, BitSet& out) const {
  if (!g.reaches.has(skipped)) return out.add(g.beyond);
  const size_t own = slot_of_[g.nodes[0]->id()];
  for (Node* n : g.nodes) {
    for (Node* user : n->users()) {
      const size_t slot = slot_of_[user->id()];
      if (slot != skipped && slot != own) out.add(behind(user));
    }
  }
}

size_t GroupGraph::merge(size_t a, size_t b) {
  const size_t size_a = groups_[a].nodes.size(), size_b = groups_[b].nodes.size();
  // The members of the smaller group move; of equals those of `a`, which may be new: nothing leads to it then.
  const size_t kept = size_a > size_b ? a : b, removed = size_a > size_b ? b : a;
  Group &to = groups_[kept], &from = groups_[removed];
  to.id = size_a >= size_b ? groups_[a].id : groups_[b].id;
  BitSet beyond;
  beyond_without(to, removed, beyond);
  beyond_without(from, kept, beyond);
  to.beyond = std::move(beyond);
  from.reaches.clear(kept);
  const bool grows = !to.reaches.includes(from.reaches);
  const bool reached = removed != newest_;
  to.reaches.add(from.reaches);
  to.reaches.clear(removed);
  for (Node* n : from.nodes) slot_of_[n->id()] = kept;
  to.nodes.insert(to.nodes.end(), from.nodes.begin(), from.nodes.end());
  if (from.order < to.order) {
    std::erase(live_, kept);
    std::ranges::replace(live_, removed, kept);
    to.order = from.order;
  } else {
    std::erase(live_, removed);
  }
  if (grows || reached) lead_on(kept, removed);
  groups_[removed] = Group{};
  free_.push_back(removed);
  return kept;
}

// What led to one of two groups leads to all that the merged one leads to.
void GroupGraph::lead_on(size_t kept, size_t removed) {
  const BitSet& further = groups_[kept].reaches;
  const auto update = [&](BitSet& reaches, BitSet* beyond) {
    if (!reaches.has(kept) && !reaches.has(removed)) return;
    reaches.add(further);
    reaches.set(kept);
    reaches.clear(removed);
    if (!beyond) return;
    if (beyond->has(removed)) beyond->set(kept);
    beyond->clear(removed);
    beyond->add(further);
  };
  for (Node* n : singles_) update(reaches_[n->id()], nullptr);
  for (size_t slot : live_) {
    if (slot != kept) update(groups_[slot].reaches, &groups_[slot].beyond);
  }
}

}  // namespace fxjit::inline v0::fx
