// What a torch function does that meets a Proxy.
#include "python/fx_args.h"
#include "python/fx_tracer.h"

namespace fxjit::inline v0::python {

namespace {

// The tracers of the proxies (instances of `cls`) in a structure of tuples, lists and dicts. Usually there is one.
void find_tracers(PyObject* cls, PyObject* o, std::vector<PyObject*>& out) {
  if (is_proxy(o)) {
    if (PyObject_IsInstance(o, cls) != 1) return;
    PyObject* tracer = proxy_tracer(o);
    for (PyObject* known : out) {
      if (known == tracer) return;
    }
    out.push_back(tracer);
  } else if (PyTuple_Check(o)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) find_tracers(cls, PyTuple_GET_ITEM(o, i), out);
  } else if (PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) find_tracers(cls, PyList_GET_ITEM(o, i), out);
  } else if (PyDict_Check(o)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) find_tracers(cls, value, out);
  }
}

[[noreturn]] void reject_tracers(const std::vector<PyObject*>& tracers, PyObject* function) {
  nb::list list;
  for (PyObject* t : tracers) list.append(nb::handle(t));
  call_helper("reject_tracers", {list.ptr(), function});
  throw PythonErrorSet{};
}

// Functions that need no second look: everything else may be a ScriptMethod, an OpOverload, a higher-order operator.
bool is_plain_function(PyObject* f) {
  return PyFunction_Check(f) || PyCFunction_Check(f) || Py_TYPE(f) == &PyMethodDescr_Type ||
         Py_TYPE(f) == &PyWrapperDescr_Type;
}

}  // namespace

PyObject* torch_function(PyObject* cls, PyObject* function, PyObject* args, PyObject* kwargs) {
  std::vector<PyObject*> tracers;
  find_tracers(cls, args, tracers);
  if (kwargs) find_tracers(cls, kwargs, tracers);
  if (tracers.size() > 1) reject_tracers(tracers, function);
  if (tracers.empty() || !is_plain_function(function) || !PyTuple_Check(args)) {
    nb::object keywords = kwargs ? nb::borrow(kwargs) : own(PyDict_New());
    return call_helper("torch_function", {cls, function, args, keywords.ptr()}).release().ptr();
  }
  nb::object name = own(PyObject_GetAttrString(function, "__name__"));
  Call call{fx::Opcode::CallFunction, function, &PyTuple_GET_ITEM(args, 0), static_cast<size_t>(PyTuple_GET_SIZE(args)),
            kwargs};
  int method = PySet_Contains(state().tensor_methods, function);
  if (method < 0) PyErr_Clear();
  if (method == 1) {
    call.op = fx::Opcode::CallMethod;
    call.target = name.ptr();
    return record(tracers[0], call);
  }
  nb::object candidate = own(text(fx::Graph::target_to_name(from_python(name.ptr(), nullptr))));
  call.name = candidate.ptr();
  return record(tracers[0], call);
}

PyObject* proxy_class(PyObject* proxy, void*) {
  return guarded([&]() -> PyObject* {
    PyTypeObject* type = Py_TYPE(proxy);
    if (type != state().proxy && type != state().attribute) return Py_NewRef(reinterpret_cast<PyObject*>(type));
    static PyObject* const module = check(PyImport_ImportModule("torch.fx.proxy"));
    return check(PyObject_GetAttrString(module, type == state().proxy ? "Proxy" : "Attribute"));
  });
}

}  // namespace fxjit::inline v0::python
