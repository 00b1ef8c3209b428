// Groups of elementwise operators, views and row reductions become kernels: each group one call_function node whose
// target is a kernel::KernelCall. What no kernel can do stays a call, with the reason in the context's notes.
//
// In three steps, each in files of its own: fusion_graph and grouping decide which operators share a kernel,
// kernel_nodes lowers the groups and puts kernels in their place, in_place and schedule order the result.
#pragma once

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

Result<bool> fuse(PassContext& context);

}  // namespace fxjit::inline v0::passes
