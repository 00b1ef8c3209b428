// What a trace puts in place of functions, and how it sees that there is nothing to replace.
#include <cmath>

#include "python/dict_watch.h"
#include "python/fx_args.h"

namespace fxjit::inline v0::python {

namespace {

PyObject* version_of(PyObject*, PyObject* dict) {
  return guarded([&] {
    if (!PyDict_Check(dict)) raise(PyExc_TypeError, "a dict");
    const uint64_t* word = dict_version(dict);
    return check(word ? PyLong_FromUnsignedLongLong(*word) : PyFloat_FromDouble(NAN));
  });
}

bool is_function(PyObject* o) { return o && PyFunction_Check(o); }

// setattr(cls, name, function). A function of Python's in place of another one changes no slot: that setattr computes
// the slots of all subclasses anew, some hundred for torch.nn.Module, took a third of the trace of a ResNet.
PyObject* set_class_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[3];
    parse_args("set_class_function", {"cls", "name", "function"}, 3, args, n, kw, a);
    auto* type = reinterpret_cast<PyTypeObject*>(a[0]);
    const bool quick = Py_TYPE(a[0]) == &PyType_Type && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
                       is_function(a[2]) && is_function(PyDict_GetItemWithError(type->tp_dict, a[1]));
    if (PyErr_Occurred()) throw PythonErrorSet{};
    if (!quick) {
      if (PyObject_SetAttr(a[0], a[1], a[2]) < 0) throw PythonErrorSet{};
    } else {
      if (PyDict_SetItem(type->tp_dict, a[1], a[2]) < 0) throw PythonErrorSet{};
      PyType_Modified(type);
    }
    return Py_NewRef(Py_None);
  });
}

PyMethodDef patch_functions[] = {
    {"dict_version", version_of, METH_O,
     "A number that no other dict has, and this one only while it does not change; NaN where there is none."},
    {"set_class_function", as_method(set_class_function), METH_FASTCALL | METH_KEYWORDS,
     "set_class_function($module, cls, name, function)\n--\n\nsetattr(cls, name, function)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_patch_functions(PyObject* module) {
  if (PyModule_AddFunctions(module, patch_functions) < 0) throw PythonErrorSet{};
}

}  // namespace fxjit::inline v0::python
