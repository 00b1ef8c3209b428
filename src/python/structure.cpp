// How results are made of their tensors.
#include "python/hot_call.h"

namespace fxjit::inline v0::python {

PyStructure::~PyStructure() {
  // The last reference may go on a thread that does not hold the GIL, or after Python has ended.
  if (!builder_) return;
  if (!Py_IsInitialized()) {
    builder_.release();
    return;
  }
  PyGILState_STATE state = PyGILState_Ensure();
  builder_ = PyRef();
  PyGILState_Release(state);
}

PyObject* PyStructure::build(std::span<PyRef> leaves) const {
  if (kind == Single) return leaves[0].release();
  auto n = static_cast<Py_ssize_t>(leaves.size());
  if (kind == Tuple) {
    PyObject* t = PyTuple_New(n);
    for (Py_ssize_t i = 0; t && i < n; ++i) PyTuple_SET_ITEM(t, i, leaves[i].release());
    return t;
  }
  PyRef list = PyRef::steal(PyList_New(n));
  if (!list) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, leaves[i].release());
  return kind == List ? list.release() : PyObject_CallOneArg(builder_.get(), list.get());
}

}  // namespace fxjit::inline v0::python
