// The dispatch over special.def, and the rules that move or make values.
#include "kernel/lower/rules.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using ops::OpId;
using support::concat;

int lower_special(Builder& b, const Call& c, uint16_t rule) {
  switch (static_cast<ops::SpecialRule>(rule)) {
#define FXJIT_SPECIAL(rule, aten) \
  case ops::SpecialRule::rule:    \
    return lower_##rule(b, c);
#include "fxjit/ops/special.def"
  }
  FXJIT_UNREACHABLE("a rule of special.def");
}

DType common_type(Builder& b, std::initializer_list<Operand> xs) {
  std::vector<ops::OperandType> types;
  for (const Operand& x : xs) types.push_back(b.operand_type(x));
  return ops::result_type(types, b.options().default_float);
}

Operand operand_or(Builder& b, const Call& c, size_t i, std::string_view name, double otherwise) {
  const fx::Argument a = b.argument(c, i, name);
  return b.operand(a.is_none() ? fx::Argument(otherwise) : a);
}

int lower_identity(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0));
  if (c.schema == "aten::positive" && x.dtype == DType::Bool) return b.fail("eager refuses +x of bool");
  return b.element(c, x, x.dtype);
}

int lower_cast(Builder& b, const Call& c) { return b.element(c, b.operand(b.argument(c, 0)), c.type.dtype); }

int lower_fill(Builder& b, const Call& c) {
  if (c.schema == "aten::zeros_like") return b.constant(c.type.dtype, 0);
  if (c.schema == "aten::ones_like") return b.constant(c.type.dtype, 1);
  return b.parameter(c, b.operand(b.argument(c, 1)), c.type.dtype);
}

int lower_masked_fill(Builder& b, const Call& c) {
  const Operand x = b.operand(b.argument(c, 0)), mask = b.operand(b.argument(c, 1)), v = b.operand(b.argument(c, 2));
  if (b.failure()) return -1;
  if (mask.dtype != DType::Bool) return b.fail(concat(c.schema, ": the mask is not bool"));
  if (v.is_tensor() && is_floating(v.dtype) && !is_floating(x.dtype)) {
    return b.fail(concat(c.schema, ": a floating value for ", to_text(x.dtype)));
  }
  const int fill = v.is_number() ? b.parameter(c, v, x.dtype) : b.element(c, v, x.dtype);
  return b.op(OpId::where, {b.element(c, mask, DType::Bool), fill, b.element(c, x, x.dtype)});
}

}  // namespace fxjit::inline v0::kernel
