// Whether what an argument shares is its alone: for cycle collectors, which may follow only what nobody else holds.
#pragma once

#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::fx {

// True where no other Argument shares the storage of this aggregate or the object. Arguments that share nothing are
// their own.
FXJIT_API bool is_sole_owner(const Argument& a) noexcept;

}  // namespace fxjit::inline v0::fx
