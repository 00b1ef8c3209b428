// create_arg: what becomes of the values that meet a trace. One description of the structure, two results: an Argument
// where nothing in Python is asked, Python objects where a hook wants to see them.
#include "python/fx_tracer.h"
#include "python/recursion.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;

bool is_leaf(PyTypeObject* t) {
  return t == &PyLong_Type || t == &PyFloat_Type || t == &PyUnicode_Type || t == &PyBool_Type || t == &PyComplex_Type;
}

bool is_list(PyTypeObject* t) {
  return t == &PyList_Type || t == reinterpret_cast<PyTypeObject*>(state().immutable_list);
}

bool is_dict(PyTypeObject* t) {
  return t == &PyDict_Type || t == reinterpret_cast<PyTypeObject*>(state().immutable_dict);
}

// Values of other types: tensors, modules, enums, dataclasses, classes with __fx_create_arg__. A Python argument.
nb::object lower_other(PyTracer* tracer, PyObject* value) {
  return call_method(reinterpret_cast<PyObject*>(tracer), "_create_arg_other", value);
}

[[noreturn]] void reject_key(PyObject* key) {
  std::string text = nb::cast<std::string>(nb::str(nb::handle(key)));
  raise(PyExc_RuntimeError, "Keys for dictionaries used as an argument cannot contain a Node. Got key: " + text);
}

// Both builders: leaf, node, other, items of sequences, dict entries, slices, ranges.
struct ArgumentBuilder {
  using Result = Argument;
  PyTracer* tracer;
  PyGraph* graph;

  Result leaf(PyObject* o) { return from_python(o, graph); }
  Result node(PyObject* proxy) {
    PyGraph* its = nullptr;
    fx::Node* n = proxy_node(proxy, &its);
    if (its != graph) return from_python(own(wrap_node(its, n)).ptr(), graph);  // kept alive, for lint to report
    return n;
  }
  Result other(PyObject* o) { return from_python(lower_other(tracer, o).ptr(), graph); }
  Result item(PyObject* o);

  Result sequence(PyObject* const* items, size_t n, bool list) {
    Argument few[8];
    std::vector<Argument> many;
    Argument* out = few;
    if (n > std::size(few)) {
      many.resize(n);
      out = many.data();
    }
    for (size_t i = 0; i < n; ++i) {
      nb::object keep = nb::borrow(items[i]);  // a hook may change the list
      out[i] = item(keep.ptr());
    }
    std::span<const Argument> span(out, n);
    return list ? Argument::list(span) : Argument::tuple(span);
  }
  Result dict(PyObject* o) {
    std::vector<fx::DictEntry> entries;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      nb::object keep_key = nb::borrow(key), keep_value = nb::borrow(value);
      Argument k = item(key);
      if (k.contains_node()) reject_key(key);
      entries.push_back({std::move(k), item(value)});
    }
    return Argument::dict(entries);
  }
  Result slice(PyObject* start, PyObject* stop, PyObject* step) {
    return Argument::slice(item(start), item(stop), item(step));
  }
};

struct PythonBuilder {
  using Result = nb::object;
  PyTracer* tracer;

  Result leaf(PyObject* o) { return nb::borrow(o); }
  Result node(PyObject* proxy) {
    PyGraph* graph = nullptr;
    fx::Node* n = proxy_node(proxy, &graph);
    return own(wrap_node(graph, n));
  }
  Result other(PyObject* o) { return lower_other(tracer, o); }
  Result item(PyObject* o);

  Result sequence(PyObject* const* items, size_t n, bool list) {
    auto size = static_cast<Py_ssize_t>(n);
    nb::object out = own(list ? PyList_New(size) : PyTuple_New(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      nb::object keep = nb::borrow(items[i]);
      PyObject* made = item(keep.ptr()).release().ptr();
      if (list) {
        PyList_SET_ITEM(out.ptr(), i, made);
      } else {
        PyTuple_SET_ITEM(out.ptr(), i, made);
      }
    }
    return out;
  }
  Result dict(PyObject* o) {
    nb::object out = own(PyDict_New());
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      nb::object k = nb::borrow(key), v = nb::borrow(value);
      if (!PyUnicode_CheckExact(key)) {
        k = item(key);
        if (from_python(k.ptr(), nullptr).contains_node()) reject_key(k.ptr());
      }
      v = item(v.ptr());
      if (PyDict_SetItem(out.ptr(), k.ptr(), v.ptr()) < 0) throw PythonErrorSet{};
    }
    return out;
  }
  Result slice(PyObject* start, PyObject* stop, PyObject* step) {
    nb::object a = item(start), b = item(stop), c = item(step);
    return own(PySlice_New(a.ptr(), b.ptr(), c.ptr()));
  }
};

template <class Builder>
typename Builder::Result lower_with(Builder& b, PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (is_leaf(t)) return b.leaf(o);
  if (is_proxy(o)) return b.node(o);
  RecursionScope scope;
  if (t == &PyTuple_Type) return b.sequence(&PyTuple_GET_ITEM(o, 0), static_cast<size_t>(PyTuple_GET_SIZE(o)), false);
  if (is_list(t)) {
    // Hooks may change a list while it is lowered: its items are taken first.
    nb::object items = own(PyList_AsTuple(o));
    return b.sequence(&PyTuple_GET_ITEM(items.ptr(), 0), static_cast<size_t>(PyTuple_GET_SIZE(items.ptr())), true);
  }
  if (is_dict(t)) return b.dict(o);
  if (t == &PySlice_Type) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    if (s->start == Py_None && s->stop == Py_None && s->step == Py_None) return b.leaf(o);
    return b.slice(s->start, s->stop, s->step);
  }
  Argument constant;
  if (constant_from_python(o, constant)) return b.leaf(o);
  return b.other(o);
}

Argument ArgumentBuilder::item(PyObject* o) { return lower_with(*this, o); }

nb::object PythonBuilder::item(PyObject* o) {
  if (hooks_of(tracer) & kCreateArg) {
    return call_method(reinterpret_cast<PyObject*>(tracer), "create_arg", o);
  }
  return lower_with(*this, o);
}

}  // namespace

Argument lower(PyTracer* tracer, PyObject* value) {
  auto* graph = tracer->graph && is_graph(tracer->graph) ? reinterpret_cast<PyGraph*>(tracer->graph) : nullptr;
  ArgumentBuilder b{tracer, graph};
  return lower_with(b, value);
}

nb::object lower_to_python(PyTracer* tracer, PyObject* value) {
  PythonBuilder b{tracer};
  return lower_with(b, value);
}

}  // namespace fxjit::inline v0::python
