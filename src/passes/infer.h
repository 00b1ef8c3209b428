// Types of results from types of operands, by the rules of the operator table.
#pragma once

#include <string_view>

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

// The type of what a call_function node gives; its operands have types. Failure: no rule, or the rule refuses.
// Questions about sizes that the expressions leave open are answered from the hints and become guards.
Result<TensorTypePtr> infer(const fx::Node& n, ShapeEnv& env);

bool has_rule(std::string_view schema);

// An imported graph carries what was observed, as constants. Where a rule exists the type becomes symbolic, in program
// order from the inputs; where there is none, or it disagrees with what was observed, the observed type stays and the
// sizes and strides that went into it are specialised: guarded to be what they were.
Result<bool> infer_types(PassContext& context);

}  // namespace fxjit::inline v0::passes
