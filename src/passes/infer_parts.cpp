// Calls that cut a tensor into views along one dimension.
#include <algorithm>

#include "passes/infer.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;

std::vector<Part> equal_parts(int64_t size, int64_t each) {
  std::vector<Part> parts;
  for (int64_t at = 0; at < size; at += each) parts.push_back({at, std::min(size, at + each)});
  return parts;
}

// Empty where the sizes do not make up the whole: eager raises.
std::vector<Part> listed_parts(int64_t size, const Argument& sizes) {
  std::vector<Part> parts;
  int64_t at = 0;
  for (const Argument& s : sizes.items()) {
    if (!s.is_int() || s.as_int() < 0) return {};
    parts.push_back({at, at + s.as_int()});
    at += s.as_int();
  }
  return at == size ? parts : std::vector<Part>();
}

std::vector<Part> cut(std::string_view schema, const Argument& how, int64_t size) {
  if (schema == "aten::unbind.int") return equal_parts(size, 1);
  if (schema == "aten::split_with_sizes" || schema == "aten::split.sizes")
    return how.is_aggregate() ? listed_parts(size, how) : std::vector<Part>();
  if (!how.is_int() || how.as_int() <= 0 || size == 0) return {};
  if (schema == "aten::split.Tensor") return equal_parts(size, how.as_int());
  return equal_parts(size, (size + how.as_int() - 1) / how.as_int());  // chunk: at most so many
}

}  // namespace

std::optional<Parts> parts_of(const fx::Node& n, ShapeEnv& env) {
  std::string_view schema = schema_of(n);
  const bool unbind = schema == "aten::unbind.int";
  if (!unbind && schema != "aten::split.Tensor" && schema != "aten::split.sizes" &&
      schema != "aten::split_with_sizes" && schema != "aten::chunk")
    return {};
  const fx::Node* x = n.arg(0).node_or_null();
  const Argument& dim = n.arg(unbind ? 1 : 2);
  if (!x || !x->tensor_type() || !dim.is_int()) return {};
  const auto rank = static_cast<int64_t>(x->tensor_type()->rank());
  const int64_t d = dim.as_int() < 0 ? dim.as_int() + rank : dim.as_int();
  if (d < 0 || d >= rank) return {};
  const Dim extent = x->tensor_type()->sizes[d];
  std::vector<Part> parts = cut(schema, n.arg(1), env.hint(extent));
  if (parts.empty()) return {};
  env.guard_eq(extent, env.constant(env.hint(extent)));
  return Parts{d, unbind, std::move(parts)};
}

}  // namespace fxjit::inline v0::passes
