#include "ops/promote.h"

#include <optional>

#include "support/errors.h"

namespace fxjit::inline v0::ops {
namespace {

bool is_complex(DType t) { return kind_of(t) == 'c'; }

DType to_complex(DType t) {
  if (is_complex(t)) return t;
  return t == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

DType promote_floating(DType a, DType b) {
  if (size_of(a) != size_of(b)) return size_of(a) > size_of(b) ? a : b;
  return DType::Float32;  // float16 with bfloat16: neither holds the other
}

DType promote_integers(DType a, DType b) {
  if (a == DType::UInt8 || b == DType::UInt8) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  return size_of(a) > size_of(b) ? a : b;
}

using Part = std::optional<DType>;

void merge(Part& part, DType t) { part = part ? promote_types(*part, t) : t; }

// c10's combine_categories: a lower category counts only by being of a higher kind.
Part combine(Part higher, Part lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? Part(to_complex(*higher)) : higher;
  bool counts = *higher == DType::Bool || is_floating(*lower) || is_complex(*lower);
  return counts ? Part(promote_types(*higher, *lower)) : higher;
}

}  // namespace

OperandType operand_type(const TensorType& t) {
  if (t.rank() > 0) return {OperandType::Tensor, t.dtype};
  return {t.is_wrapped_number ? OperandType::Wrapped : OperandType::ZeroDim, t.dtype};
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_complex(a) || is_complex(b)) {
    bool wide = size_of(to_complex(a)) == 16 && (is_complex(a) || is_floating(a));
    wide = wide || (size_of(to_complex(b)) == 16 && (is_complex(b) || is_floating(b)));
    return wide ? DType::Complex128 : DType::Complex64;
  }
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  return is_floating(a) ? promote_floating(a, b) : promote_integers(a, b);
}

DType result_type(std::span<const OperandType> operands, DType default_float) {
  FXJIT_CHECK(!operands.empty(), "a result type of nothing");
  Part tensor, zero_dim, wrapped;
  for (const OperandType& o : operands) {
    switch (o.category) {
      case OperandType::Tensor:
        merge(tensor, o.dtype);
        break;
      case OperandType::ZeroDim:
        merge(zero_dim, o.dtype);
        break;
      case OperandType::Wrapped:
        if (is_complex(o.dtype)) {
          merge(wrapped, to_complex(default_float));
        } else {
          merge(wrapped, is_floating(o.dtype) ? default_float : o.dtype);
        }
        break;
    }
  }
  return *combine(tensor, combine(zero_dim, wrapped));
}

Promoted promote(Promote rule, std::span<const OperandType> operands, DType default_float) {
  if (rule == Promote::Logical) return {DType::Bool, DType::Bool};
  DType t = result_type(operands, default_float);
  switch (rule) {
    case Promote::Same:
    case Promote::Where:
      return {t, t};
    case Promote::Float:
      if (!is_floating(t) && !is_complex(t)) t = default_float;
      return {t, t};
    case Promote::Compare:
    case Promote::Predicate:
      return {t, DType::Bool};
    case Promote::Logical:
      break;
  }
  FXJIT_UNREACHABLE("promotion rule");
}

}  // namespace fxjit::inline v0::ops
