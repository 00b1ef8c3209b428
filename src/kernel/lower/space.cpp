#include "kernel/lower/space.h"

#include "kernel/lower/lower.h"
#include "ops/registry.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using support::concat;

namespace {

Result<void> mark(std::vector<bool>& reduced, const fx::Argument& a) {
  if (!a.is_int()) return Failure{"a reduced dimension that is no literal"};
  const int64_t rank = static_cast<int64_t>(reduced.size());
  const int64_t d = a.as_int() < 0 ? a.as_int() + rank : a.as_int();
  if (d < 0 || d >= rank) return Failure{"a reduced dimension out of range"};
  reduced[static_cast<size_t>(d)] = true;
  return {};
}

bool is_bool(const fx::Argument& a) { return a.is_bool() && a.as_bool(); }

// The axes of a tensor: its dimensions but for those of one element.
Space space_of(ShapeEnv& env, std::span<const Dim> sizes, const std::vector<bool>& reduced) {
  Space s;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (env.is_const(sizes[d], 1)) continue;
    s.extents.push_back(sizes[d]);
    s.reduced.push_back(!reduced.empty() && reduced[d]);
  }
  return s;
}

bool known(const std::vector<Space>& spaces, const Space& s) {
  for (const Space& o : spaces) {
    if (o.extents == s.extents) return true;
  }
  return false;
}

void add_finer(ShapeEnv& env, std::span<fx::Node* const> nodes, std::vector<Space>& out) {
  for (fx::Node* n : nodes) {
    auto entry = ops::find_schema(aten_schema(*n));
    if (!entry || entry->kind != ops::OpClass::View || entry->view() != ops::ViewRule::reshape) continue;
    fx::Node* source = n->arg(0).node_or_null();
    if (source == nullptr || source->tensor_type() == nullptr) continue;
    for (const TensorTypePtr& t : {source->tensor_type(), n->tensor_type()}) {
      Space s = space_of(env, t->sizes, {});
      if (s.extents.size() > out.front().extents.size() && !known(out, s)) out.push_back(std::move(s));
    }
  }
}

}  // namespace

Result<ReducedDims> reduced_dims(const fx::Node& node) {
  const fx::Node* x = node.args().size() > 0 ? node.arg(0).node_or_null() : nullptr;
  if (x == nullptr || x->tensor_type() == nullptr) return Failure{"a reduction of something that is no tensor"};
  ReducedDims out;
  const size_t rank = x->tensor_type()->rank();
  out.reduced.assign(rank, false);
  const bool by_dim = node.args().size() > 1 && !node.arg(1).is(fx::Argument::Kind::DType);
  const fx::Argument dims = by_dim ? node.arg(1) : fx::Argument();
  if (dims.is_int()) {
    if (auto r = mark(out.reduced, dims); !r) return r.failure();
  } else if (dims.is_aggregate() && dims.size() > 0) {
    for (const fx::Argument& d : dims.items()) {
      if (auto r = mark(out.reduced, d); !r) return r.failure();
    }
  } else if (dims.is_none() || dims.is_aggregate()) {
    out.reduced.assign(rank, true);
  } else {
    return Failure{"reduced dimensions that are no literals"};
  }
  out.keepdim = by_dim && node.args().size() > 2 && is_bool(node.arg(2));
  return out;
}

Result<std::vector<Space>> candidate_spaces(ShapeEnv& env, std::span<fx::Node* const> nodes,
                                            std::span<fx::Node* const> outputs) {
  std::vector<Space> out;
  for (fx::Node* n : nodes) {
    auto entry = ops::find_schema(aten_schema(*n));
    if (!entry || entry->kind != ops::OpClass::Reduce) continue;
    const Result<ReducedDims> dims = reduced_dims(*n);
    if (!dims) return dims.failure();
    Space s = space_of(env, n->arg(0).as_node()->tensor_type()->sizes, dims->reduced);
    bool any = false;
    for (size_t a = 0; a < s.extents.size(); ++a) {
      any = any || s.reduced[a];
      if (s.reduced[a] && env.is_const(s.extents[a], 0)) return Failure{"a reduction of no elements"};
    }
    if (!any) return Failure{"a reduction of single elements"};
    out.push_back(std::move(s));
    return out;
  }
  out.push_back(space_of(env, outputs.front()->tensor_type()->sizes, {}));
  add_finer(env, nodes, out);
  return out;
}

std::optional<Index> output_index(ShapeEnv& env, const Space& space, std::span<const Dim> sizes) {
  Index all, rows;
  std::vector<Dim> row_extents;
  for (size_t a = 0; a < space.extents.size(); ++a) {
    all.push_back(along(env, static_cast<int32_t>(a)));
    if (space.reduced[a]) continue;
    rows.push_back(all.back());
    row_extents.push_back(space.extents[a]);
  }
  auto index = reshape_index(env, space, sizes, space.extents, all);
  if (index || row_extents.size() == space.extents.size()) return index;
  return reshape_index(env, space, sizes, row_extents, rows);
}

}  // namespace fxjit::inline v0::kernel
