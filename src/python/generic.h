// The generic form of forward in a Python process: LLVM IR with one call per node, values as PyObject* in frame slots.
#pragma once

#include <Python.h>

#include <memory>
#include <string>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::python {

class GenericForward {
 public:
  // `graph`: a snapshot; it is not edited any more.
  explicit GenericForward(fx::GraphPtr graph);
  ~GenericForward();

  // Runs it: one value per placeholder, attributes of `module`. A new reference; null with a Python error set, to
  // which "While executing …" was added as a note.
  PyObject* call(PyObject* module, PyObject* const* args, size_t n) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

// What a `_C.GenericForward` holds.
const GenericForward* generic_forward(PyObject* o);

}  // namespace fxjit::inline v0::python
