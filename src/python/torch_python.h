// The three things of torch's Python binding that the hot call needs, declared here because torch's own header costs
// 10 s a file (build.md's measure is ours too). src/python/hot_call.cpp checks the struct on a real tensor at import.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

#include <exception>

struct THPVariable {
  PyObject_HEAD at::Tensor cdata;
};

extern PyObject* THPVariableClass;
extern PyObject* ParameterClass;
PyObject* THPVariable_Wrap(at::TensorBase&& var);

namespace torch {
// Sets the Python error that torch's own bindings would set. Exported by libtorch_python.
void translate_exception_to_python(const std::exception_ptr& e);
}  // namespace torch

namespace fxjit::inline v0::python {

// A plain Tensor or Parameter: subclasses may mean something else by every operation.
inline bool is_plain_tensor(PyObject* o) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
  return type == THPVariableClass || type == ParameterClass;
}

inline const at::Tensor& tensor_of(PyObject* o) { return reinterpret_cast<THPVariable*>(o)->cdata; }

}  // namespace fxjit::inline v0::python
