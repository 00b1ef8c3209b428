// Composite operators become reductions and elementwise operators, which fuse into one kernel with what is around them.
// Only where the parts give what eager's CPU kernel gives: reduced dimensions last, contiguous, float32 or half types
// (widened once, narrowed once, as eager does). Everything else stays a call.
#pragma once

#include "passes/pass.h"
#include "passes/typed_builder.h"

namespace fxjit::inline v0::passes {

Result<bool> decompose(PassContext& context);

// True for the schemas that some decomposition knows: what records calls keeps these whole.
bool decomposes(std::string_view schema);

// A decomposition makes nodes at the builder's insert point and returns what stands for the value of `n`; null where
// it does not apply. For a call with several results it replaces the getitem nodes itself and returns `n`.
using Decomposition = fx::Node* (*)(const fx::Node& n, TypedBuilder& build);

fx::Node* decompose_softmax(const fx::Node& n, TypedBuilder& build);
fx::Node* decompose_log_softmax(const fx::Node& n, TypedBuilder& build);
fx::Node* decompose_layer_norm(const fx::Node& n, TypedBuilder& build);
fx::Node* decompose_native_layer_norm(const fx::Node& n, TypedBuilder& build);
fx::Node* decompose_batch_norm(const fx::Node& n, TypedBuilder& build);

// Puts `made` in the place of `n`, with the very strides that eager's result has: the elementwise operators at its end
// may give other ones to dimensions of one element. `made` must be new. InternalError where the types differ otherwise.
void replace_call(fx::Node* n, fx::Node* made, const ShapeEnv& env);

// The operand as float32, if it is a contiguous CPU tensor of float32 or a half type with some elements; else null.
const TensorType* row_operand(const fx::Node* x, ShapeEnv& env);

}  // namespace fxjit::inline v0::passes
