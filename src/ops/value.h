// One element of any type, and what operators do with it: constant folding and the reference interpreter.
#pragma once

#include <cstdint>

#include "fxjit/dtype.h"
#include "ops/op_table.h"

namespace fxjit::inline v0::ops {

// The bits of a double for floating types (which hold each value of the narrower ones), of an int64 for integers
// and bool. Kernel constants hold the same.
struct Value {
  uint64_t bits = 0;

  static Value of(double v);
  static Value of(int64_t v);
  double f() const;
  int64_t i() const;
  bool operator==(const Value&) const = default;
};

// `v` as an element of type `t`: rounded to nearest even, or wrapped. A floating `t` takes a double, the others an
// int64.
Value round_to(DType t, Value v);

// ATen's conversion. Floating to integer truncates; out of range it gives what eager gives on x86: the smallest
// int64 or int32, and for the narrower types the low bits of that (of an int64 for uint8).
Value cast(DType from, DType to, Value v);

// The largest finite number of a floating type.
double largest(DType t);

// Reads and writes an element in memory.
Value load(DType t, const void* p);
void store(DType t, void* p, Value v);

// True where the row's REF has a meaning on operands of type `t`: its domain, and float64 beside float32.
bool has_reference(OpId id, DType t);

// The row's REF on operands of type `t`, rounded to `t`; a bool for rows that return one. For `where`, x is a bool.
// InternalError unless has_reference(id, t).
Value apply(OpId id, DType t, Value x, Value y = {}, Value z = {});

// Half precision, as c10 converts: to nearest even.
uint16_t float_to_half(float v);
float half_to_float(uint16_t bits);
uint16_t float_to_bfloat(float v);
float bfloat_to_float(uint16_t bits);

}  // namespace fxjit::inline v0::ops
