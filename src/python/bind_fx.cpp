// fxjit._C: types of the fx core, map_arg, and what Python hands in at import.
#include <array>
#include <cstring>
#include <unordered_map>

#include "python/fx_args.h"
#include "python/recursion.h"

namespace fxjit::inline v0::python {

namespace {

PyObject* exception_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Runtime:
      return PyExc_RuntimeError;
    case ErrorKind::Name:
      return PyExc_NameError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Key:
      return PyExc_KeyError;
    case ErrorKind::Attribute:
      return PyExc_AttributeError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::Trace:
      return state().trace_error ? state().trace_error : PyExc_ValueError;
    case ErrorKind::Assertion:
      return PyExc_AssertionError;
    case ErrorKind::Internal:
      return state().internal_error ? state().internal_error : PyExc_RuntimeError;
  }
  return PyExc_RuntimeError;
}

// Functions that nearly every graph calls share one handle, and with it the names that it has looked up.
std::unordered_map<PyObject*, fx::Ref<PyCallable>>& immortal_callables() {
  static auto* map = new std::unordered_map<PyObject*, fx::Ref<PyCallable>>;
  return *map;
}

constexpr std::array<const char*, 7> kOpcodes = {"placeholder", "get_attr", "call_function", "call_method",
                                                 "call_module", "output",   "root"};

const std::array<PyObject*, 7>& opcode_names() {
  static const auto names = [] {
    std::array<PyObject*, 7> a{};
    for (size_t i = 0; i < a.size(); ++i) a[i] = check(PyUnicode_InternFromString(kOpcodes[i]));
    return a;
  }();
  return names;
}

// The structure of `a` with nodes replaced by their values, in plain containers: what a callee is given.
nb::object load_values(PyObject* a, PyObject* env) {
  if (is_node(a)) {
    PyObject* value = PyDict_GetItemWithError(env, a);
    if (value) return nb::borrow(value);
    if (PyErr_Occurred()) throw PythonErrorSet{};
    raise(PyExc_RuntimeError, "Node referenced nonexistent value " + std::string(node_of(a)->name()) +
                                  "! Run Graph.lint() to diagnose such issues");
  }
  if (PyTuple_Check(a)) {
    auto n = PyTuple_GET_SIZE(a);
    nb::object out = own(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyTuple_SET_ITEM(out.ptr(), i, load_values(PyTuple_GET_ITEM(a, i), env).release().ptr());
    }
    if (PyTuple_CheckExact(a)) return out;
    return own(PyObject_CallObject(reinterpret_cast<PyObject*>(Py_TYPE(a)), out.ptr()));
  }
  if (PyList_Check(a)) {
    auto n = PyList_GET_SIZE(a);
    nb::object out = own(PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyList_SET_ITEM(out.ptr(), i, load_values(PyList_GET_ITEM(a, i), env).release().ptr());
    }
    return out;
  }
  if (PyDict_Check(a)) {
    nb::object out = own(PyDict_New());
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(a, &at, &key, &value);) {
      nb::object loaded = load_values(value, env);
      if (PyDict_SetItem(out.ptr(), key, loaded.ptr()) < 0) throw PythonErrorSet{};
    }
    return out;
  }
  if (PySlice_Check(a)) {
    auto* s = reinterpret_cast<PySliceObject*>(a);
    nb::object start = load_values(s->start, env), stop = load_values(s->stop, env), step = load_values(s->step, env);
    return own(PySlice_New(start.ptr(), stop.ptr(), step.ptr()));
  }
  return nb::borrow(a);
}

PyObject* load(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("load_values", {"a", "env"}, 2, args, n, kw, a);
    if (!PyDict_Check(a[1])) raise(PyExc_TypeError, "env must be a dict");
    return load_values(a[0], a[1]).release().ptr();
  });
}

// The structure of `a` with fn applied to its nodes, or (leaves) to everything that is no aggregate. Containers become
// immutable ones, as node arguments are.
nb::object map_structure(PyObject* a, PyObject* fn, bool leaves) {
  const RecursionScope scope(" while mapping a structure");
  if (PyTuple_Check(a)) {
    auto n = PyTuple_GET_SIZE(a);
    nb::object out = own(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyTuple_SET_ITEM(out.ptr(), i, map_structure(PyTuple_GET_ITEM(a, i), fn, leaves).release().ptr());
    }
    if (!PyTuple_CheckExact(a) && PyObject_HasAttrString(a, "_fields")) {
      return own(PyObject_CallObject(reinterpret_cast<PyObject*>(Py_TYPE(a)), out.ptr()));
    }
    return out;
  }
  if (PyList_Check(a)) {
    nb::object items = own(PyList_AsTuple(a));
    nb::object mapped = map_structure(items.ptr(), fn, leaves);
    return own(PyObject_CallOneArg(state().immutable_list, mapped.ptr()));
  }
  if (PyDict_Check(a)) {
    auto* type = reinterpret_cast<PyTypeObject*>(state().immutable_dict);
    nb::object out = own(type->tp_new(type, state().empty_tuple, nullptr));
    nb::object items = own(PyDict_Items(a));
    for (nb::handle item : items) {
      nb::object value = map_structure(PyTuple_GET_ITEM(item.ptr(), 1), fn, leaves);
      if (PyDict_SetItem(out.ptr(), PyTuple_GET_ITEM(item.ptr(), 0), value.ptr()) < 0) throw PythonErrorSet{};
    }
    return out;
  }
  if (PySlice_Check(a)) {
    auto* s = reinterpret_cast<PySliceObject*>(a);
    nb::object start = map_structure(s->start, fn, leaves), stop = map_structure(s->stop, fn, leaves);
    nb::object step = map_structure(s->step, fn, leaves);
    return own(PySlice_New(start.ptr(), stop.ptr(), step.ptr()));
  }
  if (leaves || is_node(a)) return own(PyObject_CallOneArg(fn, a));
  return nb::borrow(a);
}

PyObject* map_arg(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("map_arg", {"a", "fn"}, 2, args, n, kw, a);
    if (!PyCallable_Check(a[1])) raise(PyExc_AssertionError, "torch.fx.map_arg(a, fn): fn must be a callable");
    return map_structure(a[0], a[1], false).release().ptr();
  });
}

PyObject* map_aggregate(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("map_aggregate", {"a", "fn"}, 2, args, n, kw, a);
    return map_structure(a[0], a[1], true).release().ptr();
  });
}

// The first proxy in a structure, or None.
PyObject* find_proxy_in(PyObject* a) {
  if (is_proxy(a)) return a;
  const RecursionScope scope(" while looking for a proxy");
  PyObject* found = nullptr;
  if (PyTuple_Check(a)) {
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(a); ++i) found = find_proxy_in(PyTuple_GET_ITEM(a, i));
  } else if (PyList_Check(a)) {
    for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(a); ++i) found = find_proxy_in(PyList_GET_ITEM(a, i));
  } else if (PyDict_Check(a)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; !found && PyDict_Next(a, &at, &key, &value);) found = find_proxy_in(value);
  } else if (PySlice_Check(a)) {
    auto* s = reinterpret_cast<PySliceObject*>(a);
    for (PyObject* part : {s->start, s->stop, s->step}) {
      if (!found) found = find_proxy_in(part);
    }
  }
  return found;
}

PyObject* find_proxy(PyObject*, PyObject* a) {
  return guarded([&] { return Py_NewRef(or_none(find_proxy_in(a))); });
}

// (path, type) of the module whose forward made the node, or None.
PyObject* node_scope(PyObject*, PyObject* node) {
  return guarded([&]() -> PyObject* {
    const fx::NodeMeta* meta = node_of(node)->meta_if_any();
    auto* mine = meta ? exactly<PyMeta>(meta->extension.get()) : nullptr;
    if (!mine || !mine->path) Py_RETURN_NONE;
    return PyTuple_Pack(2, mine->path, mine->type);
  });
}

// configure(helpers=module, immortal=[functions], **members of State)
PyObject* configure(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    State& s = state();
    static const char* names[] = {"helpers",        "graph_class",    "immutable_list", "immutable_dict", "trace_error",
                                  "internal_error", "tensor_methods", "traceback_dict", "immortal",       nullptr};
    PyObject *helpers, *graph, *list, *dict, *trace, *internal, *methods, *traceback, *immortal;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOOOOOO", const_cast<char**>(names), &helpers, &graph, &list,
                                     &dict, &trace, &internal, &methods, &traceback, &immortal)) {
      throw PythonErrorSet{};
    }
    s.helpers = Py_NewRef(helpers);
    s.graph_class = Py_NewRef(graph);
    s.immutable_list = Py_NewRef(list);
    s.immutable_dict = Py_NewRef(dict);
    s.trace_error = Py_NewRef(trace);
    s.internal_error = Py_NewRef(internal);
    s.tensor_methods = Py_NewRef(methods);
    s.traceback_dict = Py_NewRef(traceback);
    s.empty_dict = check(PyObject_CallNoArgs(dict));
    init_constants();
    for (nb::handle f : nb::borrow(immortal)) {
      auto made = fx::make_ref<PyCallable>(f.ptr());
      made->immortal = true;
      immortal_callables()[f.ptr()] = made;
    }
    nb::object builtins = own(PyImport_ImportModule("builtins"));
    s.getattr_function = own(PyObject_GetAttrString(builtins.ptr(), "getattr")).release().ptr();
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"map_arg", as_method(map_arg), METH_FASTCALL | METH_KEYWORDS,
     "map_arg($module, a, fn)\n--\n\nfn applied to each Node in a."},
    {"map_aggregate", as_method(map_aggregate), METH_FASTCALL | METH_KEYWORDS,
     "map_aggregate($module, a, fn)\n--\n\nfn applied to each leaf of a."},
    {"load_values", as_method(load), METH_FASTCALL | METH_KEYWORDS,
     "load_values(a, env): a with nodes replaced by their values in the dict env, in plain containers."},
    {"find_proxy", find_proxy, METH_O, "The first Proxy in a structure, or None."},
    {"node_scope", node_scope, METH_O, nullptr},
    {"configure", as_method(configure), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

State& state() {
  static auto* s = new State{};  // never destroyed: the interpreter may be gone by then
  return *s;
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonErrorSet&) {
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    PyErr_SetString(exception_class(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an unknown C++ exception");
  }
}

void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw PythonErrorSet{};
}

nb::object call_method(PyObject* o, const char* name, PyObject* argument) {
  nb::object key = own(PyUnicode_InternFromString(name));
  PyObject* argv[] = {o, argument};
  return own(PyObject_VectorcallMethod(key.ptr(), argv, 2, nullptr));
}

nb::object call_helper(const char* name, std::initializer_list<PyObject*> args) {
  if (!state().helpers) raise(PyExc_ImportError, "import fxjit.fx before using fxjit._C");
  nb::object method = own(PyUnicode_InternFromString(name));
  PyObject* argv[8] = {state().helpers};
  std::copy(args.begin(), args.end(), argv + 1);
  nb::object f = own(PyObject_GetAttr(state().helpers, method.ptr()));
  return own(PyObject_Vectorcall(f.ptr(), argv + 1, args.size(), nullptr));
}

fx::Opcode opcode_of(PyObject* name) {
  const auto& names = opcode_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<fx::Opcode>(i);
  }
  std::string text = nb::cast<std::string>(nb::str(nb::handle(name)));
  if (auto op = fx::parse_opcode(text)) return *op;
  raise(PyExc_AssertionError, "op '" + text + "' is not in _legal_ops");
}

PyObject* opcode_name(fx::Opcode op) { return opcode_names()[static_cast<size_t>(op)]; }

fx::Ref<PyCallable> callable_from_python(PyObject* o) {
  auto it = immortal_callables().find(o);
  return it == immortal_callables().end() ? fx::make_ref<PyCallable>(o) : it->second;
}

PyTypeObject* add_type(PyObject* module, PyType_Spec* spec, PyTypeObject* base) {
  nb::object bases = base ? own(PyTuple_Pack(1, base)) : nb::object();
  nb::object type = own(PyType_FromModuleAndSpec(module, spec, bases.ptr()));
  if (PyModule_AddObjectRef(module, std::strrchr(spec->name, '.') + 1, type.ptr()) < 0) throw PythonErrorSet{};
  auto* made = reinterpret_cast<PyTypeObject*>(type.release().ptr());
  // Messages of Python's own name a class without its module where it is written in Python.
  made->tp_name = std::strrchr(spec->name, '.') + 1;
  return made;
}

void bind_fx(nb::module_& m) {
  PyObject* module = m.ptr();
  static_assert(static_cast<size_t>(fx::Opcode::Root) + 1 == kOpcodes.size());
  try {
    state().empty_tuple = check(PyTuple_New(0));
    add_graph_types(module);
    add_node_types(module);
    add_users_type(module);
    add_proxy_types(module);
    add_tracer_types(module);
    add_module_functions(module);
    add_patch_functions(module);
    add_text_functions(module);
    if (PyModule_AddFunctions(module, functions) < 0) throw PythonErrorSet{};
  } catch (const PythonErrorSet&) {
    nb::raise_python_error();
  }
}

}  // namespace fxjit::inline v0::python
