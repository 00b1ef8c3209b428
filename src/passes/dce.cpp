#include "passes/dce.h"

namespace fxjit::inline v0::passes {

Result<bool> dce(PassContext& context) { return context.graph->eliminate_dead_code(); }

}  // namespace fxjit::inline v0::passes
