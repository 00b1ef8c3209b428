// The typed graph as fusion sees it: operators that kernels can hold, edges between them through views, and the
// dimensions that each runs over.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

// The dimensions of more than one element that an operator runs over, and which of them it reduces (none: empty).
struct IterationSpace {
  std::vector<Dim> dims;
  std::vector<bool> reduced;

  bool operator==(const IterationSpace&) const = default;
  bool reduces() const { return !reduced.empty(); }
  std::vector<Dim> row_dims() const;  // without the reduced ones
};

// The space in which both can run: of equal dimensions and reductions, or one over the rows of the other.
std::optional<IterationSpace> unify(const IterationSpace& a, const IterationSpace& b);

// An operand of a node, seen through views. `plain`: the views in between only add, remove or repeat dimensions of one
// element, so that a kernel may hold both ends.
struct FusionEdge {
  fx::Node* source;
  bool plain;
};

class FusionGraph {
 public:
  explicit FusionGraph(PassContext& context);

  // Operators that a kernel can hold. Views are none of them: kernels see through them, and those that somebody else
  // needs stay calls.
  bool is_member(const fx::Node& n) const { return info_[n.id()].member; }
  bool is_view(const fx::Node& n) const { return info_[n.id()].view; }
  const IterationSpace& space(const fx::Node& n) const { return info_[n.id()].space; }
  // True for a tensor of the space's own dimensions, read or made once an iteration.
  bool spans(const fx::Node& n, const IterationSpace& space) const { return info_[n.id()].shape == space.dims; }
  // Of all nodes but views, to and from nodes that are no views. What must stay in order has an edge, too.
  std::span<const FusionEdge> inputs(const fx::Node& n) const { return info_[n.id()].inputs; }
  std::span<fx::Node* const> users(const fx::Node& n) const { return info_[n.id()].users; }
  // The node behind a chain of views; the node itself if it is none.
  fx::Node* base(fx::Node* n) const { return info_[n->id()].view ? info_[n->id()].source.source : n; }

  size_t size() const { return info_.size(); }

 private:
  struct Info {
    bool member = false;
    bool view = false;
    IterationSpace space;
    std::vector<Dim> shape;
    FusionEdge source{};  // of a view
    std::vector<FusionEdge> inputs;
    std::vector<fx::Node*> users;
  };

  void classify(PassContext& context, fx::Node* n);
  void connect(const PassContext& context, fx::Node* n);

  std::vector<Info> info_;  // by node id
  fx::Node* last_effect_ = nullptr;
};

// Dimensions that are not the constant 1.
std::vector<Dim> squeezed(const ShapeEnv& env, std::span<const Dim> sizes);

}  // namespace fxjit::inline v0::passes
