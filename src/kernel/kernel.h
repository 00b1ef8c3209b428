// Kernel IR: one loop nest with its loads, its expressions and its stores. A value type of vectors and ids: it can be
// printed, parsed, hashed and compared, and knows no sizes, names or varying literals, only their places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fxjit/dtype.h"
#include "ops/op_table.h"

namespace fxjit::inline v0::kernel {

// How a buffer moves along an axis.
enum class StrideClass : uint8_t {
  Zero,  // broadcast
  Unit,  // one element a step
  Any,   // the stride is an argument of the launch
};

// Axes are ordered outermost first; the last one is the vector axis. At most one axis, the last, is a reduction axis:
// expressions with a Reduce are row kernels, without one they are elementwise. Size-1 dimensions are gone and
// dimensions that every buffer runs through without a gap are merged before a Kernel is made.
struct Axis {
  bool reduction = false;
  bool operator==(const Axis&) const = default;
};

struct Buffer {
  DType dtype = DType::Float32;
  bool output = false;
  std::vector<StrideClass> strides;  // one per axis; the reduction axis of a row result is Zero
  bool operator==(const Buffer&) const = default;
};

enum class ReduceOp : uint8_t { Sum, Prod, Max, Min, Any, All };  // Max and Min propagate NaN; Sum in compute_type

enum class ExprKind : uint8_t {
  Load,    // index: buffer
  Scalar,  // index: scalar argument of the launch (8 bytes: f64, or i64), converted to dtype when the loop starts
  Const,   // bits: a double for floating dtypes, an int64 for the others
  Extent,  // index: axis; the number of iterations of that axis as dtype (for mean)
  Op,      // op over args, all of one dtype but where the row says otherwise; result rounded to dtype
  Cast,    // args[0] to dtype, with C++'s and ATen's rules (float to int truncates)
  Reduce,  // reduce over the reduction axis of args[0]; dtype is the accumulator's and the result's
};

// Values of half types hold numbers of that type: an operator computes in float32 and rounds to dtype.
struct Expr {
  ExprKind kind = ExprKind::Const;
  DType dtype = DType::Float32;
  ops::OpId op{};                   // Op
  ReduceOp reduce = ReduceOp::Sum;  // Reduce
  int32_t index = -1;               // Load, Scalar, Extent
  int32_t args[3] = {-1, -1, -1};   // ids of earlier expressions
  uint64_t bits = 0;                // Const
  bool operator==(const Expr&) const = default;
};

struct Store {
  int32_t buffer = -1;
  int32_t expr = -1;
  bool operator==(const Store&) const = default;
};

struct Kernel {
  std::vector<Axis> axes;
  std::vector<Buffer> buffers;  // inputs and outputs; an output that is also read (in-place) appears once as each
  std::vector<DType> scalars;
  std::vector<Expr> exprs;  // in order of dependence
  std::vector<Store> stores;

  bool has_reduction() const { return !axes.empty() && axes.back().reduction; }
  bool operator==(const Kernel&) const = default;
};

// Canonical text: equal kernels have equal texts, and parse(print(k)) == k. It is the kernel's part of the cache key.
std::string print(const Kernel& k);
Kernel parse(const std::string& text);  // throws ValueError with line and column

// Throws InternalError that names the kernel's line and the broken rule.
void verify(const Kernel& k);

uint64_t hash(const Kernel& k);

// Reference: runs the kernel on host memory, plainly, through the REF column of the operator table.
// pointers: one per buffer; extents: one per axis; strides: in elements, [buffer][axis]; scalars: 8 bytes each.
void interpret(const Kernel& k, void* const* pointers, const int64_t* extents, const int64_t* strides,
               const uint64_t* scalars);

}  // namespace fxjit::inline v0::kernel
