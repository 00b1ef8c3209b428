#include "ops/registry.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "support/errors.h"
#include "support/format.h"

namespace fxjit::inline v0::ops {
namespace {

struct Registry {
  std::unordered_map<std::string_view, SchemaEntry> entries;
  std::vector<std::string_view> names;

  void add(OpClass kind, int index, std::string_view schemas) {
    for (std::string_view schema : support::split(schemas, ' ')) {
      bool fresh = entries.emplace(schema, SchemaEntry{kind, static_cast<uint16_t>(index)}).second;
      FXJIT_CHECK(fresh, "two rows of the operator tables name ", schema);
      names.push_back(schema);
    }
  }

  Registry() {
    for (const OpRow& r : rows()) add(OpClass::Elementwise, static_cast<int>(r.id), r.aten);
#define FXJIT_SPECIAL(rule, aten) add(OpClass::Special, static_cast<int>(SpecialRule::rule), aten);
#include "fxjit/ops/special.def"
#define FXJIT_REDUCE(name, op, widen, aten) add(OpClass::Reduce, static_cast<int>(ReduceId::name), aten);
#include "fxjit/ops/reduce.def"
#define FXJIT_VIEW(rule, aten) add(OpClass::View, static_cast<int>(ViewRule::rule), aten);
#include "fxjit/ops/view.def"
#define FXJIT_LIBRARY(name, aten) add(OpClass::Library, static_cast<int>(LibraryId::name), aten);
#include "fxjit/ops/library.def"
  }
};

const Registry& registry() {
  static const Registry instance;
  return instance;
}

}  // namespace

std::optional<SchemaEntry> find_schema(std::string_view schema) {
  const auto& entries = registry().entries;
  auto it = entries.find(schema);
  return it == entries.end() ? std::nullopt : std::optional(it->second);
}

std::span<const std::string_view> all_schemas() { return registry().names; }

const OpRow* find(std::string_view schema) {
  std::optional<SchemaEntry> e = find_schema(schema);
  return e && e->kind == OpClass::Elementwise ? &row(e->op()) : nullptr;
}

}  // namespace fxjit::inline v0::ops
