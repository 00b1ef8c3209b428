#include "passes/fusion_graph.h"

#include <algorithm>

#include "kernel/lower/lower.h"
#include "kernel/lower/space.h"
#include "ops/registry.h"
#include "passes/alias.h"
#include "passes/canonicalize.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;
using ops::OpClass;

bool is_fusible_class(OpClass c) { return c == OpClass::Elementwise || c == OpClass::Special || c == OpClass::Reduce; }

// contiguous and to make memory of their own unless they give back their operand; detach and alias never do.
bool makes_memory(const Node& n, ShapeEnv& env) {
  std::string_view schema = schema_of(n);
  if (!may_view(schema)) return true;
  bool copies = schema == "aten::contiguous" || schema == "aten::type_as" || schema.starts_with("aten::to.");
  const Node* operand = copies ? n.arg(0).node_or_null() : nullptr;
  return operand && operand->tensor_type() && !returns_operand(n, *operand->tensor_type(), env);
}

IterationSpace space_of(const Node& n, OpClass c, const ShapeEnv& env) {
  if (c != OpClass::Reduce) return {squeezed(env, n.tensor_type()->sizes), {}};
  const std::vector<Dim>& sizes = n.arg(0).as_node()->tensor_type()->sizes;
  IterationSpace space;
  const Result<kernel::ReducedDims> dims = kernel::reduced_dims(n);
  if (!dims) return space;  // can_fuse has said so
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (env.is_const(sizes[d], 1)) continue;
    space.dims.push_back(sizes[d]);
    space.reduced.push_back(dims->reduced[d]);
  }
  // Over dimensions of one element it is a copy.
  if (std::find(space.reduced.begin(), space.reduced.end(), true) == space.reduced.end()) space.reduced.clear();
  return space;
}

// A view that changes nothing but dimensions of one element.
bool is_plain(const Node& view, const ShapeEnv& env) {
  const Node* operand = view.arg(0).as_node();
  ops::ViewRule rule = ops::find_schema(schema_of(view))->view();
  if (rule == ops::ViewRule::expand || rule == ops::ViewRule::unsqueeze || rule == ops::ViewRule::squeeze) return true;
  return rule == ops::ViewRule::reshape &&
         squeezed(env, view.tensor_type()->sizes) == squeezed(env, operand->tensor_type()->sizes);
}

}  // namespace

std::vector<Dim> squeezed(const ShapeEnv& env, std::span<const Dim> sizes) {
  std::vector<Dim> dims;
  for (Dim d : sizes)
    if (!env.is_const(d, 1)) dims.push_back(d);
  return dims;
}

std::vector<Dim> IterationSpace::row_dims() const {
  std::vector<Dim> rows;
  for (size_t i = 0; i < dims.size(); ++i)
    if (reduced.empty() || !reduced[i]) rows.push_back(dims[i]);
  return rows;
}

std::optional<IterationSpace> unify(const IterationSpace& a, const IterationSpace& b) {
  if (a.dims == b.dims) {
    if (!a.reduces()) return b;
    if (!b.reduces() || a.reduced == b.reduced) return a;
    return std::nullopt;
  }
  if (a.reduces() && !b.reduces() && b.dims == a.row_dims()) return a;
  if (b.reduces() && !a.reduces() && a.dims == b.row_dims()) return b;
  return std::nullopt;
}

FusionGraph::FusionGraph(PassContext& context) : info_(context.graph->created()) {
  for (Node* n : context.graph->nodes()) {
    classify(context, n);
    connect(context, n);
  }
}

void FusionGraph::classify(PassContext& context, Node* n) {
  Info& info = info_[n->id()];
  if (n->tensor_type()) info.shape = squeezed(context.env, n->tensor_type()->sizes);
  if (n->op() != fx::Opcode::CallFunction) return;
  auto entry = ops::find_schema(schema_of(*n));
  std::string refused;
  if (is_call(*n, "aten::copy_")) {
    return;  // in_place.h has the word on it
  } else if (n->is_impure()) {
    refused = "it has effects";
  } else if (!entry) {
    if (!schema_of(*n).starts_with("aten::")) return;
    refused = "no row of the operator tables";
  } else if (entry->kind == OpClass::View) {
    // One that reads a second tensor for its sizes is a call like any other.
    const Node* operand = n->arg(0).node_or_null();
    info.view = operand && operand->tensor_type() && n->tensor_type() && n->all_input_nodes().size() == 1;
    return;
  } else if (entry->kind == OpClass::Library) {
    refused = "a library computes it";
  } else if (!n->tensor_type() || !makes_memory(*n, context.env)) {
    return;
  } else if (Result<void> ok = kernel::can_fuse(context.env, n); !ok) {
    refused = ok.reason();
  }
  info.member = refused.empty() && is_fusible_class(entry->kind);
  if (info.member) {
    info.space = space_of(*n, entry->kind, context.env);
  } else {
    context.notes.push_back(std::string(n->name()) + ": " + refused);
  }
}

void FusionGraph::connect(const PassContext& context, Node* n) {
  Info& info = info_[n->id()];
  auto edge_to = [&](Node* input) {
    const Info& in = info_[input->id()];
    return in.view ? in.source : FusionEdge{input, true};
  };
  if (info.view) {
    info.source = edge_to(n->arg(0).as_node());
    info.source.plain = info.source.plain && is_plain(*n, context.env);
    return;
  }
  for (Node* input : n->all_input_nodes()) {
    FusionEdge edge = edge_to(input);
    info.inputs.push_back(edge);
    info_[edge.source->id()].users.push_back(n);
  }
  if (effect_of(*n) != Effect::Order) return;
  if (last_effect_) {
    info.inputs.push_back({last_effect_, false});
    info_[last_effect_->id()].users.push_back(n);
  }
  last_effect_ = n;
}

}  // namespace fxjit::inline v0::passes
