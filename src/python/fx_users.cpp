// node.users: a live, ordered view, read like the dict that it is in torch.fx (nodes → None).
#include "python/fx_args.h"

namespace fxjit::inline v0::python {

namespace {

struct PyUsers {
  PyObject_HEAD PyObject* node;
};

PyObject*& node_field(PyObject* o) { return reinterpret_cast<PyUsers*>(o)->node; }

PyObject* users_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject* node = nullptr;
    if (!PyArg_ParseTuple(args, "O", &node)) throw PythonErrorSet{};
    node_of(node);
    PyObject* o = check(type->tp_alloc(type, 0));
    node_field(o) = Py_NewRef(node);
    return o;
  });
}

void users_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Py_CLEAR(node_field(o));
  type->tp_free(o);
  Py_DECREF(type);
}

nb::object as_list(PyObject* o) {
  fx::Node* n = node_of(node_field(o));
  return own(node_list(reinterpret_cast<PyNode*>(node_field(o))->graph, n->users_vector()));
}

nb::object as_dict(PyObject* o) {
  nb::object list = as_list(o);
  return call_method(reinterpret_cast<PyObject*>(&PyDict_Type), "fromkeys", list.ptr());
}

Py_ssize_t users_length(PyObject* o) {
  return guarded_int([&] { return static_cast<int>(node_of(node_field(o))->num_users()); });
}

int users_contains(PyObject* o, PyObject* user) {
  return guarded_int([&] {
    if (!is_node(user)) return 0;
    fx::Node* producer = node_of(node_field(o));
    return node_of(user)->uses(producer) ? 1 : 0;
  });
}

// Over those that are there now: the graph may be edited meanwhile.
PyObject* users_iter(PyObject* o) {
  return guarded([&] { return check(PyObject_GetIter(as_list(o).ptr())); });
}

PyObject* users_subscript(PyObject* o, PyObject* key) {
  int found = users_contains(o, key);
  if (found < 0) return nullptr;
  if (found) Py_RETURN_NONE;
  PyErr_SetObject(PyExc_KeyError, key);
  return nullptr;
}

PyObject* users_repr(PyObject* o) {
  return guarded([&] { return check(PyObject_Repr(as_dict(o).ptr())); });
}

PyObject* users_compare(PyObject* a, PyObject* b, int op) {
  return guarded([&] {
    nb::object other = Py_TYPE(b) == state().users ? as_dict(b) : nb::borrow(b);
    return check(PyObject_RichCompare(as_dict(a).ptr(), other.ptr(), op));
  });
}

template <char const* name>
PyObject* users_delegate(PyObject* o, PyObject*) {
  return guarded([&] { return check(PyObject_CallMethod(as_dict(o).ptr(), name, nullptr)); });
}
constexpr char kKeys[] = "keys", kValues[] = "values", kItems[] = "items", kCopy[] = "copy";

PyObject* users_get(PyObject* o, PyObject* args) {
  PyObject *key = nullptr, *fallback = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &key, &fallback)) return nullptr;
  int found = users_contains(o, key);
  return found < 0 ? nullptr : Py_NewRef(found ? Py_None : fallback);
}

// What is copied or pickled is a dict.
PyObject* users_reduce(PyObject* o, PyObject*) {
  return guarded([&] { return Py_BuildValue("O(O)", &PyDict_Type, as_dict(o).ptr()); });
}

PyObject* users_or(PyObject* a, PyObject* b) {
  return guarded([&] {
    auto plain = [](PyObject* o) { return Py_TYPE(o) == state().users ? as_dict(o) : nb::borrow(o); };
    return check(PyNumber_Or(plain(a).ptr(), plain(b).ptr()));
  });
}

PyObject* users_reversed(PyObject* o, PyObject*) {
  return guarded([&] {
    nb::object list = as_list(o);
    if (PyList_Reverse(list.ptr()) < 0) throw PythonErrorSet{};
    return check(PyObject_GetIter(list.ptr()));
  });
}

PyMethodDef users_methods[] = {
    {"keys", users_delegate<kKeys>, METH_NOARGS, nullptr},
    {"values", users_delegate<kValues>, METH_NOARGS, nullptr},
    {"items", users_delegate<kItems>, METH_NOARGS, nullptr},
    {"copy", users_delegate<kCopy>, METH_NOARGS, nullptr},
    {"get", users_get, METH_VARARGS, nullptr},
    {"__reduce__", users_reduce, METH_NOARGS, nullptr},
    {"__reversed__", users_reversed, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot users_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(users_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(users_dealloc)},
    {Py_tp_iter, reinterpret_cast<void*>(users_iter)},
    {Py_tp_repr, reinterpret_cast<void*>(users_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(users_compare)},
    {Py_nb_or, reinterpret_cast<void*>(users_or)},
    {Py_mp_length, reinterpret_cast<void*>(users_length)},
    {Py_mp_subscript, reinterpret_cast<void*>(users_subscript)},
    {Py_sq_contains, reinterpret_cast<void*>(users_contains)},
    {Py_tp_methods, users_methods},
    {0, nullptr},
};
PyType_Spec users_spec = {"fxjit.fx.node._Users", sizeof(PyUsers), 0, Py_TPFLAGS_DEFAULT, users_slots};

}  // namespace

void add_users_type(PyObject* module) { state().users = add_type(module, &users_spec); }

}  // namespace fxjit::inline v0::python
