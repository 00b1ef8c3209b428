// The in-place operators that have a pure form.
#include <algorithm>
#include <span>

#include "ops/aten_target.h"
#include "passes/functionalize.h"

namespace fxjit::inline v0::passes {
namespace {

// "add" stands for add_: the pure operator has the same overloads and arguments, and its result has self's sizes.
constexpr std::string_view kForms[] = {
    "abs",
    "absolute",
    "acos",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "baddbmm",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "ceil",
    "celu",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "div",
    "divide",
    "elu",
    "eq",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fill",
    "fix",
    "floor",
    "floor_divide",
    "fmod",
    "frac",
    "ge",
    "gelu",
    "greater",
    "greater_equal",
    "gt",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "heaviside",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "le",
    "leaky_relu",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "lt",
    "masked_fill",
    "masked_scatter",
    "mish",
    "mul",
    "multiply",
    "nan_to_num",
    "ne",
    "neg",
    "negative",
    "not_equal",
    "pow",
    "put",
    "rad2deg",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "renorm",
    "round",
    "rsqrt",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "selu",
    "sgn",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "threshold",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "xlogy",
};

}  // namespace

std::string functional_form(std::string_view schema) {
  std::string_view name = ops::operator_name(schema);
  std::string_view overload;
  if (size_t dot = schema.find('.'); dot != schema.npos) overload = schema.substr(dot);
  std::string_view base;
  if (name.starts_with("__i") && name.ends_with("__")) {  // __iand__ → __and__; the arithmetic ones are not recorded
    return "aten::__" + std::string(name.substr(3)) + std::string(overload);
  }
  if (name.ends_with('_')) base = name.substr(0, name.size() - 1);
  if (std::find(std::begin(kForms), std::end(kForms), base) == std::end(kForms)) return {};
  return "aten::" + std::string(base) + std::string(overload);
}

}  // namespace fxjit::inline v0::passes
