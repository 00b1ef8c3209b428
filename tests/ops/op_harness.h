// Kernels made from rows of the operator tables, compiled for each target of this machine and compared with the
// reference interpreter on guarded memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "ops/op_table.h"
#include "ops/samples.h"
#include "ops/value.h"

namespace fxjit::testing {

// What the rows are tried in.
inline constexpr DType kTypes[] = {DType::UInt8, DType::Int8,    DType::Int16,   DType::Int32,    DType::Int64,
                                   DType::Bool,  DType::Float16, DType::Float32, DType::BFloat16, DType::Float64};

// "avx512" and "avx2", as far as this machine runs them.
std::vector<std::string> kernel_targets();

// Memory of one buffer: elements at any stride, with guard bytes around, beginning `skew` elements behind a 64-byte
// boundary so that nothing is aligned by luck.
class Memory {
 public:
  Memory(DType t, int64_t elements, int skew);
  void* data() { return bytes_.data() + offset_; }
  ops::Value get(int64_t i) const;
  void set(int64_t i, ops::Value v);
  // Whether the bytes before the first and behind the last element are what they were.
  bool guards_hold() const;

 private:
  DType type_;
  int64_t elements_;
  size_t offset_;
  std::vector<unsigned char> bytes_;
};

// A launch: extents and the strides of [buffer][axis], which also give the memory each buffer needs.
struct Shape {
  std::vector<int64_t> extents, strides;
  std::vector<uint64_t> scalars = {};
};

// How far a result may be from the reference.
struct Tolerance {
  double ulps = 0;                 // of the result's type at the result
  double relative_to_operand = 0;  // times the magnitude of the first input: where a sum cancels
  double absolute = 0;
};

Tolerance tolerance_of(const ops::OpRow& row, DType t);

// Runs `k` compiled for `target`, with the units cut into several calls, and by the interpreter, on the same inputs
// (drawn from `sets`, one per input buffer), and compares every element of every output. "" or what differs.
std::string compare(const kernel::Kernel& k, const Shape& shape, const std::vector<std::vector<ops::Value>>& sets,
                    const Tolerance& tolerance, const std::string& target);

}  // namespace fxjit::testing
