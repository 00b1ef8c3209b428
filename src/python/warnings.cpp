#include "python/warnings.h"

#include <Python.h>

#include <string>

namespace fxjit::inline v0::python {
namespace {

PyObject* category_of(const c10::Warning& warning) {
  const c10::Warning::warning_variant_t type = warning.type();
  return std::holds_alternative<c10::DeprecationWarning>(type) ? PyExc_DeprecationWarning : PyExc_UserWarning;
}

// As torch words it: with the place in C++ that gave it.
std::string text_of(const c10::Warning& warning) {
  if (warning.verbatim()) return warning.msg();
  const c10::SourceLocation& place = warning.source_location();
  return warning.msg() + " (Triggered internally at " + place.file + ":" + std::to_string(place.line) + ".)";
}

}  // namespace

bool WarningCollector::give_all() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  bool ok = true;
  for (const c10::Warning& w : std::vector<c10::Warning>(std::move(held_)))
    ok = ok && PyErr_WarnEx(category_of(w), text_of(w).c_str(), 1) == 0;
  if (!type) return ok;
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return false;
}

}  // namespace fxjit::inline v0::python
