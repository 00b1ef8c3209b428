// What a pass may do with a call.
#pragma once

#include "fxjit/fx/node.h"

namespace fxjit::inline v0::fx {

// Whether it may write to what it is given. Modules may do anything: they do not count here.
bool may_write(const Node& n);
// A call of a function or method whose value depends on its arguments alone, as far as can be known.
bool is_reproducible_call(const Node& n);

}  // namespace fxjit::inline v0::fx
