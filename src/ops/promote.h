// Type promotion: at::result_type, and what each rule of the operator table makes of it.
#pragma once

#include <span>

#include "fxjit/dtype.h"
#include "fxjit/tensor_type.h"
#include "ops/op_table.h"

namespace fxjit::inline v0::ops {

// An operand as promotion sees it: tensors with dimensions decide, 0-dim tensors only by their kind (integer below
// floating), Python numbers below those.
struct OperandType {
  enum Category : uint8_t { Tensor, ZeroDim, Wrapped } category = Tensor;
  DType dtype = DType::Float32;
};

OperandType operand_type(const TensorType& t);

// c10::promoteTypes.
DType promote_types(DType a, DType b);

// at::result_type. `default_float` is what torch.get_default_dtype() gives. Needs at least one operand.
DType result_type(std::span<const OperandType> operands, DType default_float = DType::Float32);

struct Promoted {
  DType compute;  // T: every operand is cast to it (but the condition of `where`)
  DType result;
};

// The types of a row on these operands (for Where without the condition).
Promoted promote(Promote rule, std::span<const OperandType> operands, DType default_float = DType::Float32);

}  // namespace fxjit::inline v0::ops
