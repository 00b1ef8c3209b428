#include "support/log.h"

#include <atomic>
#include <cstdio>

namespace fxjit::inline v0::support {

LogLevel parse_log_level(std::string_view text) {
  if (text == "off") return LogLevel::Off;
  if (text == "error") return LogLevel::Error;
  if (text == "info") return LogLevel::Info;
  if (text == "debug") return LogLevel::Debug;
  return LogLevel::Warn;
}

void log(LogLevel enabled, LogLevel level, std::string_view message) {
  if (level > enabled || level == LogLevel::Off) return;
  std::string line = "fxjit: ";
  line.append(message).push_back('\n');
  std::fwrite(line.data(), 1, line.size(), stderr);  // one call: lines of several threads do not mix
}

namespace {
// Set once at load time by the binding; a warning has no other way to Python's `warnings`.
std::atomic<WarningHandler> warning_handler{nullptr};
}  // namespace

void warn(const std::string& message) {
  if (const WarningHandler handler = warning_handler.load(std::memory_order_acquire)) return handler(message);
  log(LogLevel::Warn, LogLevel::Warn, "warning: " + message);
}

WarningHandler set_warning_handler(WarningHandler handler) {
  return warning_handler.exchange(handler, std::memory_order_acq_rel);
}

}  // namespace fxjit::inline v0::support
