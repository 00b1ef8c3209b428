// Types of results from types of operands, for every schema that a row of the operator tables names.
#pragma once

#include "fxjit/fx/node.h"
#include "fxjit/tensor_type.h"
#include "support/result.h"

namespace fxjit::inline v0::ops {

// What a call of an ATen operator gives: sizes, strides, dtype and device as eager makes them. All arguments of the
// schema are in order, and operands that are nodes have types. Failure: no rule for the schema, an operand that it
// does not know (a size that is a node), or a call that eager refuses. Sizes that must agree become guards.
Result<TensorTypePtr> infer_type(ShapeEnv& env, const fx::Node& node, DType default_float = DType::Float32);

bool has_type_rule(std::string_view schema);

}  // namespace fxjit::inline v0::ops
