// Constants that appear as arguments: devices, layouts, memory formats. The values are those of c10's enums, so that
// the torch floor converts by a cast.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fxjit/api.h"
#include "fxjit/dtype.h"

namespace fxjit::inline v0 {

inline constexpr DType kByte = DType::UInt8;
inline constexpr DType kChar = DType::Int8;
inline constexpr DType kShort = DType::Int16;
inline constexpr DType kInt = DType::Int32;
inline constexpr DType kLong = DType::Int64;
inline constexpr DType kHalf = DType::Float16;
inline constexpr DType kFloat = DType::Float32;
inline constexpr DType kDouble = DType::Float64;
inline constexpr DType kBool = DType::Bool;
inline constexpr DType kBFloat16 = DType::BFloat16;

namespace fx {

struct Device {
  int8_t type = 0;    // c10::DeviceType: 0 cpu, 1 cuda, … 14 meta
  int8_t index = -1;  // -1: the current one
  bool operator==(const Device&) const = default;
};

enum class Layout : int8_t { Strided, Sparse, SparseCsr, Mkldnn, SparseCsc, SparseBsr, SparseBsc, Jagged };
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

// What an Argument is. Kinds from Object on hold a reference, kinds from List on are aggregates.
enum class ArgumentKind : uint8_t {
  None,
  Bool,
  Int,
  Float,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Ellipsis,
  Node,
  Object,
  Str,
  Complex,
  List,
  Tuple,
  NamedTuple,
  Dict,
  Slice,
  Range,
};

// As str() in Python: "torch.float32", "cuda:0", "torch.strided", "torch.channels_last".
FXJIT_API std::string_view python_name(DType t);
FXJIT_API std::string python_name(Device d);
FXJIT_API std::string_view python_name(Layout l);
FXJIT_API std::string_view python_name(MemoryFormat f);
FXJIT_API std::string_view device_type_name(int8_t type);

}  // namespace fx
}  // namespace fxjit::inline v0
