// Warnings that torch's C++ gives while compiled code runs become Python's, as they do under torch's own bindings.
#pragma once

#include <c10/util/Exception.h>

#include <vector>

namespace fxjit::inline v0::python {

// Holds the thread's C++ warnings back while it lives. Made and destroyed with or without the GIL.
class WarningCollector final : public c10::WarningHandler {
 public:
  WarningCollector() : previous_(c10::WarningUtils::get_warning_handler()) {
    c10::WarningUtils::set_warning_handler(this);
  }
  ~WarningCollector() override { c10::WarningUtils::set_warning_handler(previous_); }
  WarningCollector(const WarningCollector&) = delete;
  WarningCollector& operator=(const WarningCollector&) = delete;

  void process(const c10::Warning& warning) override { held_.push_back(warning); }

  // Gives them to Python, with the GIL. False with a Python error set where a filter makes one an error. An error that
  // is set already stays.
  bool give() { return held_.empty() || give_all(); }

 private:
  bool give_all();

  c10::WarningHandler* previous_;
  std::vector<c10::Warning> held_;
};

}  // namespace fxjit::inline v0::python
