#include "support/fault.h"

#include <new>
#include <stdexcept>

#include "support/errors.h"
#include "support/log.h"

namespace fxjit::inline v0::support {

void fault_point(const Options& options, std::string_view stage) {
  std::string_view fault = options.fault;
  if (!fault.starts_with(stage)) return;
  fault.remove_prefix(stage.size());
  if (fault == ":memory") throw std::bad_alloc();
  if (fault == ":other") throw std::runtime_error(concat("a fault on purpose: ", options.fault));
  if (fault.empty()) check_failed(__FILE__, __LINE__, "no fault", concat("a fault on purpose: ", options.fault));
}

std::string absorb_fault(const Options& options) {
  try {
    throw;
  } catch (const std::exception& e) {
    const bool ours = !dynamic_cast<const Error*>(&e) || dynamic_cast<const InternalError*>(&e);
    if (!ours || options.verify || options.strict) throw;
    log(parse_log_level(options.log), LogLevel::Error, e.what());
    return concat("internal error: ", e.what());
  }
}

}  // namespace fxjit::inline v0::support
