// Composites on values.
#pragma once

#include <optional>
#include <span>

#include "fxjit/fx/callable.h"
#include "fxjit/fx/interpreter.h"

namespace fxjit::inline v0::fx {

// Traces the body of a composite written in C++ for these arguments and interprets it; empty for other callables.
std::optional<Value> run_composite(const Callable& f, std::span<const Value> args, const Value& kwargs,
                                   OperatorResolver* resolver);

}  // namespace fxjit::inline v0::fx
