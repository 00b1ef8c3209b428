// Python's recursion limit for our own recursive walks: a list that contains itself ends in RecursionError.
#pragma once

#include "python/fx_objects.h"

namespace fxjit::inline v0::python {

class RecursionScope {
 public:
  explicit RecursionScope(const char* where = " while converting an argument of a node") {
    if (Py_EnterRecursiveCall(where)) throw PythonErrorSet{};
  }
  ~RecursionScope() { Py_LeaveRecursiveCall(); }
  RecursionScope(const RecursionScope&) = delete;
  RecursionScope& operator=(const RecursionScope&) = delete;
};

}  // namespace fxjit::inline v0::python
