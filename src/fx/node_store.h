// Where a graph's nodes, edges and names live.
#pragma once

#include <memory>
#include <vector>

#include "fxjit/fx/node.h"
#include "support/arena.h"

namespace fxjit::inline v0::fx {

class NodeStore {
 public:
  // One cache line's alignment makes the first line of a node all that a walk along the list touches.
  void* allocate_node() { return node_arena.allocate(sizeof(Node), 64); }

  support::Arena node_arena;  // nodes only, so that neighbours in the list are neighbours in memory
  support::Arena arena;       // edges, names, meta
  std::vector<Node*> nodes;   // by id, erased ones and the root included
  // Whether nodes of other graphs are used here, or the reverse: a mistake that lint reports. Graphs that are used and
  // owned by a shared_ptr are kept, so that the arguments stay readable.
  bool borrows = false, lends = false;
  std::vector<std::shared_ptr<Graph>> foreign;
};

}  // namespace fxjit::inline v0::fx
