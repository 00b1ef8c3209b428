// Exceptions on the way to compiled code: what becomes of them, and such on purpose. A program that eager runs is not
// to fail because of what we do beside it.
#pragma once

#include <string>
#include <string_view>

#include "fxjit/api.h"
#include "fxjit/options.h"

namespace fxjit::inline v0::support {

// Throws where the option `fault` names this stage: an InternalError, after ":memory" std::bad_alloc, after ":other"
// another std::exception.
FXJIT_API void fault_point(const Options& options, std::string_view stage);

// To be called in a catch block: the exception as the reason for which the program is not compiled. Logs it. Rethrows
// what is the user's (`strict`, a folder of `dump`: errors of fxjit that are not internal), and everything where bugs
// are to be seen (`verify`) or fallbacks are not wanted (`strict`).
FXJIT_API std::string absorb_fault(const Options& options);

}  // namespace fxjit::inline v0::support
