// Arguments from Python and back.
#include <torch/csrc/Device.h>

#include <algorithm>
#include <unordered_map>

#include "python/fx_objects.h"
#include "python/recursion.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;
using Kind = Argument::Kind;

// Python's singletons among the constants, both ways.
struct Constants {
  std::unordered_map<PyObject*, Argument> from;
  std::unordered_map<uint64_t, PyObject*> to;  // kind in the high half, value in the low

  void add(PyObject* o, Argument a, uint64_t value) {
    to[static_cast<uint64_t>(a.kind()) << 32 | value] = o;
    from.emplace(o, std::move(a));
  }
  nb::object find(Kind kind, uint64_t value) const {
    auto it = to.find(static_cast<uint64_t>(kind) << 32 | value);
    if (it == to.end()) raise(PyExc_TypeError, "this build of torch lacks a dtype or layout that the graph names");
    return nb::borrow(it->second);
  }
};

Constants& constants() {
  static auto* c = new Constants;  // never destroyed: the interpreter may be gone by then
  return *c;
}

Argument from_items(PyObject* const* items, size_t n, PyGraph* owner, Argument (*make)(std::span<const Argument>)) {
  Argument few[8];
  if (n <= std::size(few)) {
    for (size_t i = 0; i < n; ++i) few[i] = from_python(items[i], owner);
    return make(std::span<const Argument>(few, n));
  }
  std::vector<Argument> many;
  many.reserve(n);
  for (size_t i = 0; i < n; ++i) many.push_back(from_python(items[i], owner));
  return make(many);
}

Argument from_tuple(PyObject* o, PyGraph* owner) {
  PyObject* const* items = &PyTuple_GET_ITEM(o, 0);
  auto n = static_cast<size_t>(PyTuple_GET_SIZE(o));
  if (!PyTuple_CheckExact(o) && PyObject_HasAttrString(o, "_fields")) {
    std::vector<Argument> fields;
    for (size_t i = 0; i < n; ++i) fields.push_back(from_python(items[i], owner));
    return Argument::named_tuple(callable_from_python(reinterpret_cast<PyObject*>(Py_TYPE(o))), fields);
  }
  return from_items(items, n, owner, [](std::span<const Argument> s) { return Argument::tuple(s); });
}

Argument from_dict(PyObject* o, PyGraph* owner) {
  std::vector<fx::DictEntry> entries;
  entries.reserve(static_cast<size_t>(PyDict_GET_SIZE(o)));
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
    entries.push_back({from_python(key, owner), from_python(value, owner)});
  }
  return Argument::dict(entries);
}

Argument from_range(PyObject* o, PyGraph* owner) {
  Argument part[3];
  const char* names[] = {"start", "stop", "step"};
  for (int i = 0; i < 3; ++i) part[i] = from_python(own(PyObject_GetAttrString(o, names[i])).ptr(), owner);
  return Argument::range(part[0], part[1], part[2]);
}

Argument from_node(PyObject* o, PyGraph* owner) {
  fx::Node* n = node_of(o);
  PyGraph* its = reinterpret_cast<PyNode*>(o)->graph;
  if (owner && its != owner) {
    auto* g = reinterpret_cast<PyObject*>(its);
    if (std::find(owner->foreign.begin(), owner->foreign.end(), g) == owner->foreign.end()) {
      owner->foreign.push_back(Py_NewRef(g));
    }
  }
  return n;
}

// False where the value needs a PyValue: an int beyond 64 bits, a string that is no UTF-8.
bool from_number_or_text(PyObject* o, Argument& out) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyLong_Type) {
    int overflow = 0;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) return false;
    out = v;
  } else if (t == &PyFloat_Type) {
    out = PyFloat_AS_DOUBLE(o);
  } else if (t == &PyComplex_Type) {
    out = std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
  } else if (t == &PyUnicode_Type) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) {
      PyErr_Clear();
      return false;
    }
    out = std::string_view(text, static_cast<size_t>(size));
  } else {
    return false;
  }
  return true;
}

nb::object items_to_python(const Argument& a, PyGraph* owner) {
  auto items = a.items();
  nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i) {
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), to_python(items[i], owner).release().ptr());
  }
  return tuple;
}

nb::object dict_to_python(const Argument& a, PyGraph* owner) {
  auto* type = reinterpret_cast<PyTypeObject*>(state().immutable_dict);
  nb::object dict = own(type->tp_new(type, state().empty_tuple, nullptr));
  for (const fx::DictEntry& e : a.entries()) {
    nb::object key = to_python(e.key, owner), value = to_python(e.value, owner);
    if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr()) < 0) throw PythonErrorSet{};
  }
  return dict;
}

nb::object device_to_python(fx::Device d) {
  return own(THPDevice_New(at::Device(static_cast<at::DeviceType>(d.type), d.index)));
}

}  // namespace

void init_constants() {
  nb::object table = call_helper("torch_constants", {});
  for (nb::handle row : table) {
    auto value = static_cast<uint64_t>(nb::cast<int64_t>(nb::borrow(row[1])));
    PyObject* o = nb::borrow(row[2]).release().ptr();
    switch (static_cast<char>(nb::cast<std::string>(nb::borrow(row[0]))[0])) {
      case 'd':
        constants().add(o, static_cast<DType>(value), value);
        break;
      case 'l':
        constants().add(o, static_cast<fx::Layout>(value), value);
        break;
      default:
        constants().add(o, static_cast<fx::MemoryFormat>(value), value);
    }
  }
}

bool constant_from_python(PyObject* o, Argument& out) {
  if (o == Py_None) {
    out = {};
  } else if (o == Py_True || o == Py_False) {
    out = o == Py_True;
  } else if (o == Py_Ellipsis) {
    out = Argument::ellipsis();
  } else if (Py_TYPE(o) == &THPDeviceType) {
    const at::Device& d = reinterpret_cast<THPDevice*>(o)->device;
    out = fx::Device{static_cast<int8_t>(d.type()), static_cast<int8_t>(d.index())};
  } else if (auto it = constants().from.find(o); it != constants().from.end()) {
    out = it->second;
  } else {
    return false;
  }
  return true;
}

Argument from_python(PyObject* o, PyGraph* owner) {
  if (is_node(o)) return from_node(o, owner);
  Argument out;
  if (from_number_or_text(o, out)) return out;
  RecursionScope scope;
  if (PyTuple_Check(o)) return from_tuple(o, owner);
  if (PyList_Check(o)) {
    // Converting an item runs no Python code that could shrink the list.
    PyObject* const* items = PyList_GET_SIZE(o) ? &PyList_GET_ITEM(o, 0) : nullptr;
    return from_items(items, static_cast<size_t>(PyList_GET_SIZE(o)), owner,
                      [](std::span<const Argument> s) { return Argument::list(s); });
  }
  if (PyDict_Check(o)) return from_dict(o, owner);
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    return Argument::slice(from_python(s->start, owner), from_python(s->stop, owner), from_python(s->step, owner));
  }
  if (Py_TYPE(o) == &PyRange_Type) return from_range(o, owner);
  if (constant_from_python(o, out)) return out;
  return fx::ObjectRef(fx::make_ref<PyValue>(o));
}

Argument annotation_from_python(PyObject* o, PyGraph* owner) {
  Argument a = from_python(o, owner);
  if (!exactly<PyValue>(a.object_or_null())) return a;
  return fx::ObjectRef(fx::make_ref<PyValue>(o, true));
}

nb::object to_python(const Argument& a, PyGraph* owner) {
  switch (a.kind()) {
    case Kind::None:
      return nb::none();
    case Kind::Bool:
      return nb::borrow(a.as_bool() ? Py_True : Py_False);
    case Kind::Int:
      return own(PyLong_FromLongLong(a.as_int()));
    case Kind::Float:
      return own(PyFloat_FromDouble(a.as_float()));
    case Kind::Complex:
      return own(PyComplex_FromDoubles(a.as_complex().real(), a.as_complex().imag()));
    case Kind::Str:
      return own(PyUnicode_FromStringAndSize(a.as_str().data(), static_cast<Py_ssize_t>(a.as_str().size())));
    case Kind::Ellipsis:
      return nb::borrow(Py_Ellipsis);
    case Kind::DType:
      return constants().find(a.kind(), static_cast<uint64_t>(a.as_dtype()));
    case Kind::Layout:
      return constants().find(a.kind(), static_cast<uint64_t>(a.as_layout()));
    case Kind::MemoryFormat:
      return constants().find(a.kind(), static_cast<uint64_t>(a.as_memory_format()));
    case Kind::Device:
      return device_to_python(a.as_device());
    case Kind::Node:
      return nb::steal(wrap_node(owner && owner->graph.get() == &a.as_node()->graph() ? owner : nullptr, a.as_node()));
    case Kind::Object:
      return object_to_python(a.as_object());
    case Kind::Tuple:
      return a.size() ? items_to_python(a, owner) : nb::borrow(state().empty_tuple);
    case Kind::List:
      return own(PyObject_CallOneArg(state().immutable_list, items_to_python(a, owner).ptr()));
    case Kind::NamedTuple:
      return own(PyObject_CallObject(object_to_python(*a.type_object()).ptr(), items_to_python(a, owner).ptr()));
    case Kind::Dict:
      return dict_to_python(a, owner);
    case Kind::Slice: {
      nb::object parts = items_to_python(a, owner);
      return own(PySlice_New(PyTuple_GET_ITEM(parts.ptr(), 0), PyTuple_GET_ITEM(parts.ptr(), 1),
                             PyTuple_GET_ITEM(parts.ptr(), 2)));
    }
    case Kind::Range:
      return own(PyObject_CallObject(reinterpret_cast<PyObject*>(&PyRange_Type), items_to_python(a, owner).ptr()));
  }
  raise(PyExc_SystemError, "an argument of unknown kind");
}

nb::object args_to_python(const Argument& args, PyGraph* owner) { return to_python(args, owner); }

nb::object kwargs_to_python(const Argument& kwargs, PyGraph* owner) {
  return !kwargs.is_none() && kwargs.size() ? dict_to_python(kwargs, owner) : nb::borrow(state().empty_dict);
}

}  // namespace fxjit::inline v0::python
