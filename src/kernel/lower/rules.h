// The rules of special.def, and what they share.
#pragma once

#include <initializer_list>
#include <span>

#include "kernel/lower/builder.h"
#include "ops/registry.h"

namespace fxjit::inline v0::kernel {

// The row on these operands, with promotion, casts, and eager's exceptions for bool, half types and integers.
int lower_row(Builder& b, const Call& c, ops::OpId id, std::span<const Operand> xs);

// at::result_type of the operands.
DType common_type(Builder& b, std::initializer_list<Operand> xs);

// The argument, or `otherwise` where it is missing or None.
Operand operand_or(Builder& b, const Call& c, size_t i, std::string_view name, double otherwise);

#define FXJIT_SPECIAL(rule, aten) int lower_##rule(Builder& b, const Call& c);
#include "fxjit/ops/special.def"

}  // namespace fxjit::inline v0::kernel
