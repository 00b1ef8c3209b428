// Groups of nodes that grow while a graph is read from its end, and whether two of them may become one.
#pragma once

#include <cstdint>
#include <vector>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::fx {

// A set of small numbers.
class BitSet {
 public:
  bool has(size_t i) const { return i / 64 < words_.size() && (words_[i / 64] >> (i % 64) & 1) != 0; }
  void set(size_t i) {
    if (i / 64 >= words_.size()) words_.resize(i / 64 + 1);
    words_[i / 64] |= uint64_t{1} << (i % 64);
  }
  void clear(size_t i) {
    if (i / 64 < words_.size()) words_[i / 64] &= ~(uint64_t{1} << (i % 64));
  }
  void add(const BitSet& o) {
    if (o.words_.size() > words_.size()) words_.resize(o.words_.size());
    for (size_t w = 0; w < o.words_.size(); ++w) words_[w] |= o.words_[w];
  }
  bool includes(const BitSet& o) const {
    for (size_t w = 0; w < o.words_.size(); ++w) {
      if (o.words_[w] & ~(w < words_.size() ? words_[w] : 0)) return false;
    }
    return true;
  }

 private:
  std::vector<uint64_t> words_;
};

inline constexpr size_t kNoGroup = static_cast<size_t>(-1);

// The graph in which each group is one vertex and stays acyclic. Nodes are added users first.
class GroupGraph {
 public:
  struct Group {
    size_t id;     // survives where two groups become one of them: the larger one's
    size_t order;  // the smallest id of all that went into it
    std::vector<Node*> nodes;
    BitSet reaches;  // groups behind it
    BitSet beyond;   // groups behind it, by a path through some other vertex
  };

  explicit GroupGraph(const Graph& graph) : slot_of_(graph.created(), kNoGroup), reaches_(graph.created()) {}

  void add_single(Node* n) {
    add_users(n, reaches_[n->id()], nullptr);
    singles_.push_back(n);
    newest_ = kNoGroup;
  }
  // A new group of one node; returns its slot.
  size_t add_group(Node* n);
  // No path from one to the other through a third vertex.
  bool can_merge(size_t a, size_t b) const { return !groups_[a].beyond.has(b) && !groups_[b].beyond.has(a); }
  // Makes one group of two and returns the slot that it has now. `a` gives the id where both are of one size.
  size_t merge(size_t a, size_t b);

  const std::vector<size_t>& live() const { return live_; }  // slots, ascending in `order`
  Group& group(size_t slot) { return groups_[slot]; }

 private:
  const BitSet& behind(const Node* n) const {
    const size_t slot = slot_of_[n->id()];
    return slot == kNoGroup ? reaches_[n->id()] : groups_[slot].reaches;
  }
  void add_users(Node* n, BitSet& reaches, BitSet* beyond) const;
  void beyond_without(const Group& g, size_t skipped, BitSet& out) const;
  void lead_on(size_t kept, size_t removed);

  std::vector<size_t> slot_of_;  // by id of the node
  std::vector<BitSet> reaches_;  // by id, of nodes without a group
  std::vector<Group> groups_;
  std::vector<size_t> live_, free_;
  std::vector<Node*> singles_;  // nodes without a group
  size_t newest_ = kNoGroup;    // the group that was added last if no node was added behind it: nothing leads to it
  size_t next_id_ = 0;
};

}  // namespace fxjit::inline v0::fx
