// Every ATen schema that some row of include/fxjit/ops/*.def names, and which row that is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ops/op_table.h"

namespace fxjit::inline v0::ops {

enum class OpClass : uint8_t { Elementwise, Special, Reduce, View, Library };

enum class SpecialRule : uint8_t {
#define FXJIT_SPECIAL(rule, aten) rule,
#include "fxjit/ops/special.def"
};

enum class ReduceId : uint8_t {
#define FXJIT_REDUCE(name, op, widen, aten) name,
#include "fxjit/ops/reduce.def"
};

enum class ViewRule : uint8_t {
#define FXJIT_VIEW(rule, aten) rule,
#include "fxjit/ops/view.def"
};

enum class LibraryId : uint8_t {
#define FXJIT_LIBRARY(name, aten) name,
#include "fxjit/ops/library.def"
};

// What a reduction casts its operand to.
enum class Widen : uint8_t {
  Keep,      // nothing
  Integers,  // integers and bool to int64
  Boolean,   // everything to bool
};

struct SchemaEntry {
  OpClass kind;
  uint16_t index;  // OpId, SpecialRule, ReduceId, ViewRule or LibraryId

  OpId op() const { return static_cast<OpId>(index); }
  SpecialRule special() const { return static_cast<SpecialRule>(index); }
  ReduceId reduce() const { return static_cast<ReduceId>(index); }
  ViewRule view() const { return static_cast<ViewRule>(index); }
  LibraryId library() const { return static_cast<LibraryId>(index); }
};

// The row for "aten::add.Tensor"; empty for what stays an ATen call.
std::optional<SchemaEntry> find_schema(std::string_view schema);

// All schemas of all rows, in the order of the tables.
std::span<const std::string_view> all_schemas();

}  // namespace fxjit::inline v0::ops
