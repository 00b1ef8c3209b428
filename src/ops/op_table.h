// The operator table as data. The rows are in include/fxjit/ops/*.def; each floor expands the columns it understands.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fxjit/dtype.h"

namespace fxjit::inline v0::ops {

enum class OpId : uint16_t {
#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten) name,
#include "fxjit/ops/elementwise.def"
};

#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten) +1
inline constexpr int kOpCount = 0
#include "fxjit/ops/elementwise.def"
    ;

// How operand types become the type T in which a row computes, and the result's type.
enum class Promote : uint8_t {
  Same,       // T: ATen's result_type of all operands; result T
  Float,      // as Same, but integers and bool become the default floating type; result T
  Compare,    // T: result_type; result bool
  Predicate,  // T: the operand's type; result bool; integer operands give a constant
  Logical,    // each operand is cast to bool; result bool
  Where,      // the first operand is bool; T: result_type of the other two; result T
};

// A set of types, one bit a DType.
using TypeSet = uint32_t;
inline constexpr TypeSet bit(DType t) { return TypeSet{1} << static_cast<int>(t); }
inline constexpr TypeSet kFloats32 = bit(DType::Float32) | bit(DType::Float16) | bit(DType::BFloat16);
inline constexpr TypeSet kFloats = kFloats32 | bit(DType::Float64);
inline constexpr TypeSet kInts =
    bit(DType::UInt8) | bit(DType::Int8) | bit(DType::Int16) | bit(DType::Int32) | bit(DType::Int64);
inline constexpr TypeSet kBools = bit(DType::Bool);
inline constexpr TypeSet kIntsBool = kInts | kBools;
inline constexpr TypeSet kNumbers = kFloats | kInts;
inline constexpr TypeSet kNumbersBool = kNumbers | kBools;

// What to try a row on; the values are in src/ops/samples.cpp.
enum class Samples : uint8_t {
  All,       // the whole range of the type with its special values
  Moderate,  // magnitudes up to 1e4, with specials
  Shift,     // small integers, and amounts around 0 and the width
};

struct OpRow {
  OpId id;
  std::string_view name;
  uint8_t arity;
  Promote promote;
  Samples samples;
  TypeSet domain;         // types T for which kernels are compiled
  std::string_view emit;  // the EMIT text, for documentation
  std::string_view aten;  // schemas, separated by blanks
};

// All rows, indexed by OpId.
std::span<const OpRow> rows();
const OpRow& row(OpId id);
inline bool compiles(OpId id, DType t) { return row(id).domain & bit(t); }

// The row whose ATEN column names `schema` ("aten::mul.Tensor"), or nullptr.
const OpRow* find(std::string_view schema);
// The row called `name` ("mul"), or nullptr.
const OpRow* find_name(std::string_view name);

// True where the result is bool whatever the operands are.
inline constexpr bool returns_bool(Promote p) {
  return p == Promote::Compare || p == Promote::Predicate || p == Promote::Logical;
}

}  // namespace fxjit::inline v0::ops
