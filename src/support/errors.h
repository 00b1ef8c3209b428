// Checks of our own invariants. A failed one is a bug of ours: InternalError, never abort, for we live in someone's
// process.
#pragma once

#include <string>

#include "fxjit/errors.h"
#include "support/format.h"

namespace fxjit::inline v0::support {

[[noreturn]] FXJIT_API void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace fxjit::inline v0::support

// FXJIT_CHECK(a < b, "what was being done: ", node) — the rest is concatenated, and evaluated only on failure.
#define FXJIT_CHECK(condition, ...)                                                                          \
  do {                                                                                                       \
    if (!(condition)) [[unlikely]] {                                                                         \
      ::fxjit::support::check_failed(__FILE__, __LINE__, #condition, ::fxjit::support::concat(__VA_ARGS__)); \
    }                                                                                                        \
  } while (false)

// For the end of a function whose switch covers all values.
#define FXJIT_UNREACHABLE(...) \
  ::fxjit::support::check_failed(__FILE__, __LINE__, "unreachable", ::fxjit::support::concat(__VA_ARGS__))
