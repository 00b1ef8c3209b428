// Modules during a trace: where the root's tree has them, and what a call of one records.
#include "python/fx_args.h"
#include "python/fx_tracer.h"
#include "python/recursion.h"

namespace fxjit::inline v0::python {

namespace {

// What this file knows of Python's classes. Filled by configure_modules, never freed.
struct Classes {
  PyTypeObject *module, *sequential;
  PyObject* constants;                       // a tuple of types: values that become attributes of the root
  PyObject *named_modules, *named_children;  // torch.nn.Module's own
  PyObject* getattribute;                    // and what it inherits
  std::vector<PyObject*> tables;             // names of the containers that a torch.nn.Module begins with; null: others
};
Classes& classes() {
  static auto* c = new Classes{};
  return *c;
}

// A name that is made once. Never freed.
template <Name text>
PyObject* name() {
  static PyObject* const made = check(PyUnicode_InternFromString(text.text));
  return made;
}

// ---- The tree. Python's generators over it cost more than the trace of what it holds.

// The tables of a module that tells of its submodules as torch.nn.Module does.
struct Tables {
  PyObject* dict = nullptr;     // m.__dict__
  PyObject* modules = nullptr;  // m._modules; null: ask Python
};

Tables tables_of(PyObject* m, PyObject* method, PyObject* plain_method) {
  PyTypeObject* type = Py_TYPE(m);
  if (!PyType_IsSubtype(type, classes().module) || _PyType_Lookup(type, method) != plain_method) return {};
  if (_PyType_Lookup(type, name<"__getattribute__">()) != classes().getattribute) return {};
  if (_PyType_Lookup(type, name<"_modules">())) return {};
  PyObject** dict = _PyObject_GetDictPtr(m);
  if (!dict || !*dict || PyDict_Contains(*dict, method) != 0) return {};
  PyObject* modules = PyDict_GetItemWithError(*dict, name<"_modules">());
  if (!modules || !PyDict_CheckExact(modules)) return {};
  return {*dict, modules};
}

// f(name, child) for each submodule that is there.
template <class F>
void for_each_child(PyObject* modules, F&& f) {
  const nb::object keep = nb::borrow(modules);
  PyObject *key = nullptr, *child = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(modules, &at, &key, &child);) {
    if (child == Py_None) continue;
    const nb::object kept_key = nb::borrow(key), kept_child = nb::borrow(child);
    f(key, child);
  }
}

nb::object joined(PyObject* path, PyObject* key) {
  if (PyUnicode_GET_LENGTH(path) == 0) return nb::borrow(key);
  return own(PyUnicode_Concat(own(PyUnicode_Concat(path, name<".">())).ptr(), key));
}

void add_paths(PyObject* m, PyObject* path, PyObject* paths) {
  const RecursionScope scope(" while walking a tree of modules");
  const Tables tables = tables_of(m, name<"named_modules">(), classes().named_modules);
  if (!tables.modules) {
    call_helper("add_module_paths", {m, path, paths});
    return;
  }
  if (PyDict_SetItem(paths, m, path) < 0) throw PythonErrorSet{};
  for_each_child(tables.modules, [&](PyObject* key, PyObject* child) {
    const int known = PyDict_Contains(paths, child);
    if (known < 0) throw PythonErrorSet{};
    if (!known) add_paths(child, joined(path, key).ptr(), paths);
  });
}

// Types of nearly all attributes of modules, and of no constant: asking isinstance of each would be most of the walk.
bool is_plain_value(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  for (PyTypeObject* plain : {&PyODict_Type, &PyDict_Type, &PyBool_Type, Py_TYPE(Py_None), &PySet_Type, &PyLong_Type,
                              &PyTuple_Type, &PyUnicode_Type, &PyFloat_Type, &PyList_Type}) {
    if (type == plain) return true;
  }
  return false;
}

// Names from a module up to the root: paths of most modules are asked for by nobody.
struct Names {
  const Names* outer;
  PyObject* name;
  nb::object path() const { return outer ? joined(outer->path().ptr(), name) : nb::borrow(name); }
};

void add_attributes(PyObject* m, const Names& names, PyObject* found) {
  const RecursionScope scope(" while walking a tree of modules");
  const Tables tables = tables_of(m, name<"named_children">(), classes().named_children);
  if (!tables.modules) {
    call_helper("add_tensor_attributes", {m, names.path().ptr(), found});
    return;
  }
  PyObject *key = nullptr, *value = nullptr;
  const std::vector<PyObject*>& skipped = classes().tables;
  size_t place = 0;
  for (Py_ssize_t at = 0; PyDict_Next(tables.dict, &at, &key, &value); ++place) {
    // Modules begin alike. Each of these values, looked at, is a miss of the caches.
    if (place < skipped.size() && key == skipped[place]) continue;
    if (is_plain_value(value)) continue;
    const nb::object kept = nb::borrow(value), path = joined(names.path().ptr(), key);
    const int constant = PyObject_IsInstance(value, classes().constants);
    if (constant < 0 || (constant && PyDict_SetItem(found, value, path.ptr()) < 0)) throw PythonErrorSet{};
  }
  nb::object seen;  // a module may be registered twice: its first name counts
  if (PyDict_GET_SIZE(tables.modules) > 1) seen = own(PySet_New(nullptr));
  for_each_child(tables.modules, [&](PyObject* child_name, PyObject* child) {
    if (seen.is_valid()) {
      const int known = PySet_Contains(seen.ptr(), child);
      if (known < 0 || (!known && PySet_Add(seen.ptr(), child) < 0)) throw PythonErrorSet{};
      if (known) return;
    }
    add_attributes(child, Names{&names, child_name}, found);
  });
}

void add_attributes_below(PyObject* m, PyObject* path, PyObject* found) {
  add_attributes(m, Names{nullptr, path}, found);
}

// walk(module, path, found), with `found` a dict.
template <Name Function, void (*walk)(PyObject*, PyObject*, PyObject*)>
PyObject* walk_tree(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[3];
    parse_args(Function.text, {"module", "path", "found"}, 3, args, n, kw, a);
    if (!PyUnicode_Check(a[1]) || !PyDict_Check(a[2])) raise(PyExc_TypeError, "a module, a str and a dict");
    walk(a[0], a[1], a[2]);
    return Py_NewRef(Py_None);
  });
}

// ---- Calls

bool is_leaf(PyObject* m) {
  nb::object home = own(PyObject_GetAttr(m, name<"__module__">()));
  const std::string_view text = string_of(home.ptr(), "__module__ of a module");
  if (!text.starts_with("torch.nn") && !text.starts_with("torch.ao.nn")) return false;
  const int sequential = PyObject_IsInstance(m, reinterpret_cast<PyObject*>(classes().sequential));
  if (sequential < 0) throw PythonErrorSet{};
  return !sequential;
}

PyObject* is_leaf_module(PyObject*, PyObject* m) {
  return guarded([&] { return PyBool_FromLong(is_leaf(m)); });
}

bool is_leaf_for(PyTracer* t, PyObject* m, PyObject* path) {
  if (!(hooks_of(t) & kIsLeafModule)) return is_leaf(m);
  PyObject* argv[] = {reinterpret_cast<PyObject*>(t), m, path};
  nb::object answer = own(PyObject_VectorcallMethod(name<"is_leaf_module">(), argv, 3, nullptr));
  const int yes = PyObject_IsTrue(answer.ptr());
  if (yes < 0) throw PythonErrorSet{};
  return yes;
}

nb::object path_of(PyTracer* t, PyObject* m) {
  if (!(hooks_of(t) & kPathOfModule)) {
    nb::object paths = own(PyObject_GetAttr(reinterpret_cast<PyObject*>(t), name<"submodule_paths">()));
    PyObject* path = PyDict_Check(paths.ptr()) ? PyDict_GetItemWithError(paths.ptr(), m) : nullptr;
    if (path && PyUnicode_Check(path)) return nb::borrow(path);
    if (PyErr_Occurred()) throw PythonErrorSet{};
  }
  return call_method(reinterpret_cast<PyObject*>(t), "path_of_module", m);
}

// How often the module was called before, which `counts`, a dict, is told.
Py_ssize_t count_call(PyObject* counts, PyObject* path) {
  if (!PyDict_Check(counts)) raise(PyExc_TypeError, "num_calls must be a dict");
  PyObject* known = PyDict_GetItemWithError(counts, path);
  const Py_ssize_t count = known ? PyLong_AsSsize_t(known) : 0;
  if (PyErr_Occurred()) throw PythonErrorSet{};
  if (PyDict_SetItem(counts, path, own(PyLong_FromSsize_t(count + 1)).ptr()) < 0) throw PythonErrorSet{};
  return count;
}

// What a call of a module changes in the tracer: its scope, its module stack, and what its nodes get as meta. An
// exception leaves the module stack as it is.
class ModuleScope {
 public:
  ModuleScope(PyTracer* t, PyObject* path, PyObject* type)
      : t_(t),
        scope_(own(PyObject_GetAttr(object(), name<"scope">()))),
        path_(own(PyObject_GetAttr(scope_.ptr(), name<"module_path">()))),
        type_(own(PyObject_GetAttr(scope_.ptr(), name<"module_type">()))),
        meta_(t->scope),
        stale_(t->scope_stale),
        stack_reads_(t->stack_reads) {
    set(path, type);
    try {
      push(path, type);
    } catch (...) {
      leave();
      throw;
    }
  }
  ModuleScope(const ModuleScope&) = delete;
  ~ModuleScope() { leave(); }

  void pop() {
    const nb::object item = own(PyObject_CallMethodNoArgs(stack_.ptr(), name<"popitem">()));
    if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2) raise(PyExc_TypeError, "popitem gives pairs");
    PyObject* last = PyTuple_GET_ITEM(item.ptr(), 0);
    const int same = PyObject_RichCompareBool(last, key_.ptr(), Py_EQ);
    if (same < 0) throw PythonErrorSet{};
    if (!same) {
      raise(PyExc_AssertionError, "Unexpected key " + nb::cast<std::string>(nb::str(nb::handle(last))) + ", expected " +
                                      nb::cast<std::string>(key_));
    }
    popped_ = true;
  }

 private:
  PyObject* object() const { return reinterpret_cast<PyObject*>(t_); }

  void set(PyObject* path, PyObject* type) {
    if (PyObject_SetAttr(scope_.ptr(), name<"module_path">(), path) < 0) throw PythonErrorSet{};
    if (PyObject_SetAttr(scope_.ptr(), name<"module_type">(), type) < 0) throw PythonErrorSet{};
  }

  void push(PyObject* path, PyObject* type) {
    const nb::object counts = own(PyObject_GetAttr(object(), name<"num_calls">()));
    const Py_ssize_t count = count_call(counts.ptr(), path);
    key_ = count ? own(PyUnicode_FromFormat("%U@%zd", path, count)) : nb::borrow(path);
    const nb::object entry = own(PyTuple_Pack(2, path, type));
    if (!t_->module_stack) raise(PyExc_AttributeError, "this tracer has no module_stack");
    stack_ = nb::borrow(t_->module_stack);
    const bool ordered = PyODict_CheckExact(stack_.ptr());
    const int again = ordered ? PyDict_Contains(stack_.ptr(), key_.ptr()) : 0;
    if (again < 0 || PyObject_SetItem(stack_.ptr(), key_.ptr(), entry.ptr()) < 0) throw PythonErrorSet{};
    const bool follows = ordered && !again && !stale_ && (!meta_ || PyTuple_Check(or_none(meta_->module_stack)));
    t_->scope_stale = !follows;
    if (!follows) return;
    const nb::object stack = longer(meta_ ? meta_->module_stack : state().empty_tuple, key_.ptr(), entry.ptr());
    t_->scope = fx::make_ref<PyMeta>(stack.ptr(), path, type);
  }

  static nb::object longer(PyObject* tuple, PyObject* a, PyObject* b) {
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    nb::object made = own(PyTuple_New(n + 2));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(made.ptr(), i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
    PyTuple_SET_ITEM(made.ptr(), n, Py_NewRef(a));
    PyTuple_SET_ITEM(made.ptr(), n + 1, Py_NewRef(b));
    return made;
  }

  void leave() noexcept {
    PyObject *kind = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&kind, &value, &traceback);
    try {
      set(path_.ptr(), type_.ptr());
    } catch (const PythonErrorSet&) {
      PyErr_Clear();  // a scope of the user's own
    }
    PyErr_Restore(kind, value, traceback);
    t_->scope = std::move(meta_);
    t_->scope_stale = stale_ || !popped_ || t_->stack_reads != stack_reads_;
  }

  PyTracer* t_;
  nb::object scope_, path_, type_, stack_, key_;
  fx::Ref<PyMeta> meta_;
  bool stale_, popped_ = false;
  unsigned int stack_reads_;
};

PyObject* record_call(PyTracer* t, PyObject* m, PyObject* forward, PyObject* args, PyObject* kwargs) {
  const nb::object path = path_of(t, m), type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(m)));
  ModuleScope scope(t, path.ptr(), type.ptr());
  nb::object result;
  if (is_leaf_for(t, m, path.ptr())) {
    const Call call{fx::Opcode::CallModule, path.ptr(), &PyTuple_GET_ITEM(args, 0),
                    static_cast<size_t>(PyTuple_GET_SIZE(args)), kwargs};
    result = own(record(reinterpret_cast<PyObject*>(t), call));
  } else {
    result = own(PyObject_Call(forward, args, kwargs));
  }
  scope.pop();
  return result.release().ptr();
}

// Tracer.call_module; with `ask` the tracer's class may have its own.
template <bool ask>
PyObject* call_module(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[5];
    parse_args("call_module", {"tracer", "m", "forward", "args", "kwargs"}, 5, args, n, kw, a);
    if (!is_tracer(a[0])) raise(PyExc_TypeError, std::string("expected a Tracer, not ") + Py_TYPE(a[0])->tp_name);
    if (ask && hooks_of(as_tracer(a[0])) & kCallModule) {
      return check(PyObject_VectorcallMethod(name<"call_module">(), a, 5, nullptr));
    }
    const nb::object tuple = PyTuple_CheckExact(a[3]) ? nb::borrow(a[3]) : own(PySequence_Tuple(a[3]));
    nb::object dict = PyDict_CheckExact(a[4]) ? nb::borrow(a[4]) : own(PyDict_New());
    if (dict.ptr() != a[4] && PyDict_Update(dict.ptr(), a[4]) < 0) throw PythonErrorSet{};
    return record_call(as_tracer(a[0]), a[1], a[2], tuple.ptr(), dict.ptr());
  });
}

// The globals of the function that is a module's forward, or None.
PyObject* forward_globals(PyObject*, PyObject* m) {
  return guarded([&]() -> PyObject* {
    PyObject* forward = _PyType_Lookup(Py_TYPE(m), name<"forward">());
    PyObject** dict = _PyObject_GetDictPtr(m);
    if (forward && PyFunction_Check(forward) && dict && *dict && PyDict_Contains(*dict, name<"forward">()) == 0) {
      return Py_NewRef(reinterpret_cast<PyFunctionObject*>(forward)->func_globals);
    }
    return call_helper("forward_globals", {m}).release().ptr();
  });
}

// configure_modules(Module, Sequential, constants, Tracer)
PyObject* configure_modules(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[4];
    parse_args("configure_modules", {"module", "sequential", "constants", "tracer"}, 4, args, n, kw, a);
    Classes& c = classes();
    c.module = reinterpret_cast<PyTypeObject*>(Py_NewRef(a[0]));
    c.sequential = reinterpret_cast<PyTypeObject*>(Py_NewRef(a[1]));
    c.constants = Py_NewRef(a[2]);
    state().tracer_class = reinterpret_cast<PyTypeObject*>(Py_NewRef(a[3]));
    c.named_modules = Py_XNewRef(_PyType_Lookup(c.module, name<"named_modules">()));
    c.named_children = Py_XNewRef(_PyType_Lookup(c.module, name<"named_children">()));
    const nb::object fresh = own(PyObject_CallNoArgs(a[0]));
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(own(PyObject_GenericGetDict(fresh.ptr(), nullptr)).ptr(), &at, &key, &value);) {
      c.tables.push_back(PyDict_Check(value) || PySet_Check(value) ? Py_NewRef(key) : nullptr);
    }
    c.getattribute = Py_XNewRef(_PyType_Lookup(c.module, name<"__getattribute__">()));
    return Py_NewRef(Py_None);
  });
}

PyMethodDef module_functions[] = {
    {"add_module_paths", as_method(walk_tree<"add_module_paths", add_paths>), METH_FASTCALL | METH_KEYWORDS,
     "add_module_paths($module, module, path, found)\n--\n\nmodule → path, for those that `found` lacks: what "
     "module.named_modules() says."},
    {"add_tensor_attributes", as_method(walk_tree<"add_tensor_attributes", add_attributes_below>),
     METH_FASTCALL | METH_KEYWORDS,
     "add_tensor_attributes($module, module, path, found)\n--\n\nvalue → path, for attributes that are constants and "
     "neither parameter nor buffer."},
    {"is_leaf_module", is_leaf_module, METH_O, "What Tracer.is_leaf_module says by default."},
    {"call_module", as_method(call_module<true>), METH_FASTCALL | METH_KEYWORDS,
     "call_module($module, tracer, m, forward, args, kwargs)\n--\n\ntracer.call_module(m, forward, args, kwargs)"},
    {"base_call_module", as_method(call_module<false>), METH_FASTCALL | METH_KEYWORDS,
     "base_call_module($module, tracer, m, forward, args, kwargs)\n--\n\nTracer.call_module, whatever the tracer's "
     "class says."},
    {"forward_globals", forward_globals, METH_O, "The globals of the function that is a module's forward, or None."},
    {"configure_modules", as_method(configure_modules), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_module_functions(PyObject* module) {
  if (PyModule_AddFunctions(module, module_functions) < 0) throw PythonErrorSet{};
}

}  // namespace fxjit::inline v0::python
