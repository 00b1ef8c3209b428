#include "kernel/lower/lower.h"

#include "kernel/lower/builder.h"
#include "kernel/lower/finish.h"
#include "kernel/lower/space.h"
#include "ops/registry.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using support::concat;

namespace {

// One row cannot be shared among threads, so above this many elements ATen's sum of everything is the faster one.
constexpr int64_t kLargestSingleRow = 32768;

Result<void> check_rows(const ShapeEnv& env, const Space& space) {
  int64_t reduced = 1, rows = 1;
  for (size_t a = 0; a < space.extents.size(); ++a) (space.reduced[a] ? reduced : rows) *= env.hint(space.extents[a]);
  if (reduced > kLargestSingleRow && rows == 1) return Failure{"a reduction of everything to one element"};
  return {};
}

Result<Lowered> lower_in(ShapeEnv& env, std::span<fx::Node* const> nodes, std::span<fx::Node* const> outputs,
                         const Space& space, const LowerOptions& options) {
  if (auto rows = check_rows(env, space); !rows) return rows.failure();
  Builder b(env, nodes, space, options);
  for (fx::Node* n : outputs) {
    const std::optional<Index> index = output_index(env, space, n->tensor_type()->sizes);
    if (!index) return Failure{concat(n->name(), " is not laid over the space of the group")};
    b.store(n, *index);
    if (b.failure()) return Failure{*b.failure()};
  }
  return finish(b);
}

}  // namespace

std::string_view aten_schema(const fx::Node& node) {
  if (node.op() != fx::Opcode::CallFunction) return {};
  const std::string_view name = node.callable().qualified_name();
  return name.starts_with("aten::") ? name : std::string_view();
}

Result<Lowered> lower_group(ShapeEnv& env, std::span<fx::Node* const> nodes, std::span<fx::Node* const> outputs,
                            const LowerOptions& options) {
  if (outputs.empty()) return Failure{"a group without outputs"};
  for (fx::Node* n : nodes) {
    if (n->tensor_type() == nullptr) return Failure{concat(n->name(), " has no tensor type")};
    if (kind_of(n->tensor_type()->dtype) == 'c') return Failure{"complex numbers have no kernels"};
  }
  const Result<std::vector<Space>> spaces = candidate_spaces(env, nodes, outputs);
  if (!spaces) return spaces.failure();
  Result<Lowered> first = lower_in(env, nodes, outputs, spaces->front(), options);
  for (size_t i = 1; i < spaces->size() && !first; ++i) {
    Result<Lowered> other = lower_in(env, nodes, outputs, (*spaces)[i], options);
    if (other) return other;
  }
  return first;
}

Result<void> can_fuse(ShapeEnv& env, fx::Node* node, const LowerOptions& options) {
  const auto entry = ops::find_schema(aten_schema(*node));
  if (!entry) return Failure{concat(aten_schema(*node), " has no row in the operator tables")};
  fx::Node* const nodes[] = {node};
  Result<Lowered> alone = lower_group(env, nodes, nodes, options);
  return alone ? Result<void>() : Result<void>(alone.failure());
}

}  // namespace fxjit::inline v0::kernel
