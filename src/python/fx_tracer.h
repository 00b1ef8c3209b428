// The Python face of tracers, and what they record.
#pragma once

#include "python/fx_objects.h"

namespace fxjit::inline v0::python {

struct PyTracer {
  PyObject_HEAD PyObject* graph;
  PyObject* module_stack;    // an OrderedDict or null
  PyTypeObject* hooks_type;  // for which `hooks` was computed; null: compute anew
  unsigned int hooks_version;
  unsigned int hooks;
  fx::Ref<PyMeta> scope;  // what nodes made now get as nn_module_stack
  bool scope_stale;
  unsigned int stack_reads;  // how often somebody got hold of the stack
  PyObject* dict;
  PyObject* weak;
};

inline PyTracer* as_tracer(PyObject* o) { return reinterpret_cast<PyTracer*>(o); }

// Which steps a tracer's Python class overrides, and which options it sets.
enum Hook : unsigned int {
  kCreateArg = 1,
  kCreateNode = 2,
  kCreateProxy = 4,
  kMakeProxy = 8,
  kCheckMutable = 16,
  kStackTraces = 32,
  kForwardTraces = 64,   // only frames of functions called forward
  kFiltersFrames = 128,  // the class says itself which frames count
  kCallModule = 256,     // this and the following are steps of Tracer, the others of TracerBase
  kPathOfModule = 512,
  kIsLeafModule = 1024,
};
unsigned int hooks_of(PyTracer* t);

// What an operation on proxies records. `kwargs` may be null or a dict; `name` may be null.
struct Call {
  fx::Opcode op;
  PyObject* target;
  PyObject* const* args;
  size_t num_args;
  PyObject* kwargs;
  PyObject* name = nullptr;
  const fx::Ref<PyCallable>* handle = nullptr;  // of `target`, where the caller has it
};
// tracer.create_proxy(...), in C++ as far as the tracer's class leaves it alone. A new reference.
PyObject* record(PyObject* tracer, const Call& call);

// Lowers a value as tracer.create_arg does.
fx::Argument lower(PyTracer* tracer, PyObject* value);
nb::object lower_to_python(PyTracer* tracer, PyObject* value);

}  // namespace fxjit::inline v0::python
