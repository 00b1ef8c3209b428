// Kernels that write an input directly, in place of a result that is copied there.
#pragma once

#include "passes/pass.h"
#include "passes/schedule.h"

namespace fxjit::inline v0::passes {

// Where the source of an aten::copy_ into an input is a kernel's result of the input's own layout that nobody else
// reads, and the kernel reads the input at most at the element that it writes, the kernel writes the input itself and
// the copy_ goes. (Row kernels store in the last pass over a row, when all of it has been read.) What else reads the
// input must come before the kernel: the edges that say so are appended to `edges`. Returns how many copies went.
int write_in_place(PassContext& context, OrderEdges& edges);

}  // namespace fxjit::inline v0::passes
