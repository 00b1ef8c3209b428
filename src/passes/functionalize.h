// Makes the graph functional: in-place operators become pure ones, and later uses read their results. What was done to
// an input is one aten::copy_ into it before the output, the only calls left that write.
//
// Failure, with the reason, where that would not be what eager does: a tensor that shares its memory with another live
// one, metadata changed in place, writes without a pure form, and a call that may raise after the first write to an
// input (eager's caller would find the input written).
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> functionalize(PassContext& context);

// The pure schema that does what `schema` does in place, with the same arguments; empty if there is none.
std::string functional_form(std::string_view schema);

}  // namespace fxjit::inline v0::passes
