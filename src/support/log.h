// Messages to the person at the terminal, and warnings, which the Python binding turns into Python's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fxjit/api.h"

namespace fxjit::inline v0::support {

enum class LogLevel : uint8_t { Off, Error, Warn, Info, Debug };

// "off", "error", "warn", "info", "debug"; Warn for anything else.
FXJIT_API LogLevel parse_log_level(std::string_view text);

// A line on stderr if `level` is at most `enabled` (Options::log parsed).
FXJIT_API void log(LogLevel enabled, LogLevel level, std::string_view message);

// A warning for the user. Goes to the handler of the process, by default to stderr.
FXJIT_API void warn(const std::string& message);
using WarningHandler = void (*)(const std::string& message);
// Returns the handler before; null restores stderr. The binding sets it once when it is loaded.
FXJIT_API WarningHandler set_warning_handler(WarningHandler handler);

}  // namespace fxjit::inline v0::support
