#include "ops/op_table.h"

#include <array>
#include <unordered_map>

#include "support/errors.h"

namespace fxjit::inline v0::ops {
namespace {

constexpr std::array<OpRow, kOpCount> kRows = {{
#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten) \
  OpRow{OpId::name, #name, arity, Promote::promote, Samples::samples, domain, #emit, aten},
#include "fxjit/ops/elementwise.def"
}};

using Index = std::unordered_map<std::string_view, const OpRow*>;

Index index_names() {
  Index index;
  for (const OpRow& r : kRows) index.emplace(r.name, &r);
  return index;
}

const OpRow* look_up(const Index& index, std::string_view key) {
  auto it = index.find(key);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace

std::span<const OpRow> rows() { return kRows; }

const OpRow& row(OpId id) {
  FXJIT_CHECK(static_cast<int>(id) < kOpCount, "no operator has the number ", static_cast<int>(id));
  return kRows[static_cast<size_t>(id)];
}

const OpRow* find_name(std::string_view name) {
  static const Index index = index_names();
  return look_up(index, name);
}

}  // namespace fxjit::inline v0::ops
