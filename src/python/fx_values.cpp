#include "python/fx_values.h"

#include <exception>

#include "fxjit/fx/ownership.h"
#include "fxjit/fx/tracer.h"
#include "python/fx_objects.h"

namespace fxjit::inline v0::python {

namespace {

// After the interpreter is gone nothing may be released: what is left then is leaked.
bool interpreter_alive() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

std::string text_of(PyObject* o, PyObject* (*convert)(PyObject*)) {
  nb::object s = nb::steal(convert(o));
  Py_ssize_t size = 0;
  const char* text = s.is_valid() ? PyUnicode_AsUTF8AndSize(s.ptr(), &size) : nullptr;
  if (text) return std::string(text, static_cast<size_t>(size));
  PyErr_Clear();
  return std::string("<") + Py_TYPE(o)->tp_name + ">";
}

// Functions on which nobody can have, or has, put a schema or a mark: what torch asks about effects is then whether its
// lists have them.
bool has_no_attributes(PyObject* f) {
  return PyCFunction_CheckExact(f) || (PyFunction_Check(f) && !reinterpret_cast<PyFunctionObject*>(f)->func_dict);
}

bool is_listed_as_impure(PyObject* f) {
  // The sets themselves, since has_side_effect adds to one.
  static PyObject* const lists = call_helper("impure_functions", {}).release().ptr();
  for (nb::handle list : nb::handle(lists)) {
    int found = PySequence_Contains(list.ptr(), f);
    if (found < 0) throw PythonErrorSet{};
    if (found) return true;
  }
  return false;
}

bool has_out_argument(const fx::Argument& kwargs) {
  if (!kwargs.is(fx::ArgumentKind::Dict)) return false;
  for (const fx::DictEntry& e : kwargs.entries())
    if (e.key.is_str() && e.key.as_str() == "out" && !e.value.is_none()) return true;
  return false;
}

std::string class_name_of(PyTypeObject* type) {
  nb::object name = nb::borrow(reinterpret_cast<PyObject*>(type));
  nb::object module = nb::getattr(name, "__module__", nb::none());
  std::string out = nb::cast<std::string>(nb::str(nb::getattr(name, "__qualname__", nb::str(type->tp_name))));
  if (!module.is_none()) {
    std::string prefix = nb::cast<std::string>(nb::str(module));
    if (prefix != "builtins") out = prefix + "." + out;
  }
  return out;
}

}  // namespace

PyHandle::~PyHandle() {
  if (!interpreter_alive()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(p_);
  PyGILState_Release(gil);
}

size_t hash_object(PyObject* o) {
  nb::gil_scoped_acquire gil;
  Py_hash_t h = PyObject_Hash(o);
  if (h == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return 0;  // unhashable: equality decides
  }
  return static_cast<size_t>(h);
}

bool equal_objects(PyObject* a, PyObject* b) {
  if (a == b) return true;
  // Only functions compare by value here: a tensor's == is no bool, and what is stored is meant by identity.
  if (Py_TYPE(a) != Py_TYPE(b) || !(PyCFunction_Check(a) || PyMethod_Check(a) || PyUnicode_Check(a))) return false;
  nb::gil_scoped_acquire gil;
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

fx::ObjectKind PyValue::object_kind() const { return fx::ObjectKind::Foreign; }

std::string PyValue::type_name() const {
  nb::gil_scoped_acquire gil;
  return class_name_of(Py_TYPE(object.get()));
}

bool PyValue::equal(const fx::Object& other) const {
  PyObject* o = held_object(other);
  return o && equal_objects(object.get(), o);
}

void PyValue::print(std::string& out) const {
  nb::gil_scoped_acquire gil;
  PyObject* o = object.get();
  if (annotation && PyType_Check(o)) {
    out += class_name_of(reinterpret_cast<PyTypeObject*>(o));
    return;
  }
  out += text_of(o, PyObject_Str);
}

void PyValue::print_repr(std::string& out) const {
  nb::gil_scoped_acquire gil;
  out += text_of(object.get(), PyObject_Repr);
}

std::string PyCallable::type_name() const {
  nb::gil_scoped_acquire gil;
  return class_name_of(Py_TYPE(object.get()));
}

bool PyCallable::equal(const fx::Object& other) const {
  if (PyObject* o = held_object(other)) return equal_objects(object.get(), o);
  const auto* callable = dynamic_cast<const fx::Callable*>(&other);
  return callable && callable->qualified_name() == qualified_name();
}

const PyCallable::Names& PyCallable::names() const {
  if (const Names* known = names_.load(std::memory_order_acquire)) return *known;
  nb::gil_scoped_acquire gil;
  nb::object three = call_helper("callable_names", {object.get()});
  auto made = std::make_unique<Names>();
  made->base = nb::cast<std::string>(nb::str(three[0]));
  made->qualified = nb::cast<std::string>(nb::str(three[1]));
  made->pretty = nb::cast<std::string>(nb::str(three[2]));
  const Names* others = nullptr;  // of a thread that ran while the helper did
  if (names_.compare_exchange_strong(others, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *others;
}

fx::Value PyCallable::call(std::span<const fx::Value> args, const fx::Value& kwargs) const {
  nb::gil_scoped_acquire gil;
  nb::object tuple = to_python(fx::Argument::tuple(args), nullptr);
  nb::object dict = kwargs.is_none() ? nb::object() : to_python(kwargs, nullptr);
  return from_python(own(PyObject_Call(object.get(), tuple.ptr(), dict.ptr())).ptr(), nullptr);
}

bool PyCallable::is_impure(const fx::Argument& args, const fx::Argument& kwargs, bool impure_random) const {
  nb::gil_scoped_acquire gil;
  if (has_no_attributes(object.get())) return is_listed_as_impure(object.get()) || has_out_argument(kwargs);
  nb::object a = to_python(args, nullptr), k = to_python(kwargs, nullptr);
  nb::object answer = call_helper("is_impure", {object.get(), a.ptr(), k.ptr(), impure_random ? Py_True : Py_False});
  return nb::cast<bool>(answer);
}

bool PyCallable::is_composite() const {
  nb::gil_scoped_acquire gil;
  return nb::cast<bool>(call_helper("is_composite", {object.get()}));
}

bool PyCallable::always_leaf() const {
  nb::gil_scoped_acquire gil;
  return nb::cast<bool>(call_helper("is_always_leaf", {object.get()}));
}

// The body runs in Python, on proxies of a GraphAppendingTracer over the same graph.
fx::Argument PyCallable::trace_body(fx::TracerBase& tracer, std::span<const fx::Argument> args,
                                    const fx::Argument& kwargs) const {
  nb::gil_scoped_acquire gil;
  nb::object graph = wrap_graph(tracer.graph().shared_from_this());
  auto* g = reinterpret_cast<PyGraph*>(graph.ptr());
  nb::object a = to_python(fx::Argument::tuple(args), g);
  nb::object k = kwargs.is_none() ? nb::steal(PyDict_New()) : to_python(kwargs, g);
  return from_python(call_helper("trace_body", {graph.ptr(), object.get(), a.ptr(), k.ptr()}).ptr(), g);
}

std::string PyModule::class_name() const {
  nb::gil_scoped_acquire gil;
  return class_name_of(Py_TYPE(object.get()));
}

std::vector<fx::Attribute> PyModule::attributes() const {
  nb::gil_scoped_acquire gil;
  std::vector<fx::Attribute> out;
  nb::object rows = call_helper("module_attributes", {object.get()});
  for (nb::handle row : rows) {
    nb::object value = nb::borrow(row[2]);
    auto kind = static_cast<fx::AttributeKind>(nb::cast<int>(nb::borrow(row[1])));
    fx::ObjectRef ref = kind == fx::AttributeKind::Module ? fx::ObjectRef(fx::make_ref<PyModule>(value.ptr()))
                                                          : fx::ObjectRef(fx::make_ref<PyValue>(value.ptr()));
    out.push_back({nb::cast<std::string>(nb::str(row[0])), std::move(ref), kind});
  }
  return out;
}

fx::ObjectRef PyModule::attribute(std::string_view name) const {
  nb::gil_scoped_acquire gil;
  nb::object pair = call_helper("module_attribute", {object.get(), nb::str(name.data(), name.size()).ptr()});
  if (pair.is_none()) return nullptr;
  nb::object value = nb::borrow(pair[1]);
  if (nb::cast<bool>(nb::borrow(pair[0]))) return fx::make_ref<PyModule>(value.ptr());
  return fx::make_ref<PyValue>(value.ptr());
}

fx::Value PyModule::call(std::span<const fx::Value> args, const fx::Value& kwargs) {
  return PyCallable(object.get()).call(args, kwargs);
}

bool PyModule::is_impure() const {
  nb::gil_scoped_acquire gil;
  // The second: nn.ReLU(inplace=True) writes to its input.
  for (const char* name : {"_is_impure", "inplace"}) {
    nb::object flag = nb::steal(PyObject_GetAttrString(object.get(), name));
    if (!flag.is_valid()) {
      PyErr_Clear();
    } else if (PyBool_Check(flag.ptr()) ? flag.ptr() == Py_True : name[0] == '_' && PyObject_IsTrue(flag.ptr()) == 1) {
      return true;
    }
  }
  return false;
}

PyMeta::PyMeta(PyObject* stack, PyObject* scope_path, PyObject* scope_type)
    : module_stack(Py_XNewRef(stack)), path(Py_XNewRef(scope_path)), type(Py_XNewRef(scope_type)) {}

PyMeta::~PyMeta() {
  if (!interpreter_alive()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_XDECREF(dict);
  Py_XDECREF(module_stack);
  Py_XDECREF(path);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  PyGILState_Release(gil);
}

PyObject* PyMeta::stack_trace() const {
  if (!trace || PyUnicode_Check(trace)) return trace;
  nb::object frames = nb::borrow(trace);
  nb::object text = call_helper("stack_trace_text", {frames.ptr(), forward_only ? Py_True : Py_False});
  Py_XSETREF(trace, text.is_none() ? nullptr : text.release().ptr());
  return trace;
}

namespace {

// What a node has as nn_module_stack, anew.
nb::object stack_of(PyObject* entries) {
  if (!PyTuple_Check(entries)) return own(PyObject_CallMethod(entries, "copy", nullptr));
  nb::object stack = own(PyODict_New());
  for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(entries); i += 2) {
    if (PyODict_SetItem(stack.ptr(), PyTuple_GET_ITEM(entries, i), PyTuple_GET_ITEM(entries, i + 1)) < 0) {
      throw PythonErrorSet{};
    }
  }
  return stack;
}

}  // namespace

fx::Ref<PyMeta> PyMeta::own(const PyMeta* shared) {
  auto made = fx::make_ref<PyMeta>(nullptr, shared ? shared->path : nullptr, shared ? shared->type : nullptr);
  made->dict = shared && shared->dict ? check(PyDict_Copy(shared->dict)) : check(PyDict_New());
  if (shared && !shared->dict && shared->module_stack) {
    if (PyDict_SetItemString(made->dict, "nn_module_stack", stack_of(shared->module_stack).ptr()) < 0) {
      throw PythonErrorSet{};
    }
  }
  if (PyObject* trace = shared && !shared->dict ? shared->stack_trace() : nullptr) {
    if (PyDict_SetItemString(made->dict, "stack_trace", trace) < 0) throw PythonErrorSet{};
  }
  return made;
}

fx::Ref<fx::MetaExtension> PyMeta::clone() const {
  nb::gil_scoped_acquire gil;
  if (!dict) return fx::Ref<fx::MetaExtension>(const_cast<PyMeta*>(this));  // immutable as long as it has no dict
  return own(this);
}

bool PyMeta::empty() const {
  if (dict) return PyDict_GET_SIZE(dict) == 0;
  return !module_stack && !stack_trace();
}

void PyMeta::traverse(fx::ObjectVisitor& visitor) const {
  if (dict) visitor.foreign(dict);
}

PyObject* held_object(const fx::Object& o) {
  auto* object = const_cast<fx::Object*>(&o);
  if (const auto* callable = exactly<PyCallable>(object)) return callable->object.get();
  if (const auto* value = exactly<PyValue>(object)) return value->object.get();
  if (const auto* module = exactly<PyModule>(object)) return module->object.get();
  return nullptr;
}

nb::object object_to_python(const fx::Object& o) {
  if (PyObject* held = held_object(o)) return nb::borrow(held);
  if (const auto* callable = dynamic_cast<const fx::Callable*>(&o)) {
    std::string_view name = callable->qualified_name();
    return call_helper("find_callable", {nb::str(name.data(), name.size()).ptr()});
  }
  raise(PyExc_TypeError, "a " + o.type_name() + " has no counterpart in Python");
}

namespace {

// `a` with handles of its own.
fx::Argument own_values(const fx::Argument& a) {
  if (!a.contains_object()) return a;
  if (auto* value = exactly<PyValue>(a.object_or_null())) {
    return fx::ObjectRef(fx::make_ref<PyValue>(value->object.get(), value->annotation));
  }
  if (!a.is_aggregate()) return a;
  std::vector<fx::Argument> items;
  if (a.is(fx::ArgumentKind::Dict)) {
    for (const fx::DictEntry& e : a.entries()) items.push_back(own_values(e.value));
  } else {
    for (const fx::Argument& item : a.items()) items.push_back(own_values(item));
  }
  return fx::Argument::rebuild(a, items);
}

}  // namespace

int visit_values(const fx::Argument& a, FunctionRef<int(PyObject*)> visit) {
  if (!a.contains_object() || !fx::is_sole_owner(a)) return 0;
  if (auto* value = exactly<PyValue>(a.object_or_null())) return visit(value->object.get());
  if (!a.is_aggregate()) return 0;
  int result = 0;
  if (a.is(fx::ArgumentKind::Dict)) {
    for (const fx::DictEntry& e : a.entries()) {
      if ((result = visit_values(e.value, visit)) != 0) break;
    }
  } else {
    for (const fx::Argument& item : a.items()) {
      if ((result = visit_values(item, visit)) != 0) break;
    }
  }
  return result;
}

void own_handles(fx::Node* n) {
  // The values stay equal, nodes included: the use lists need no change, and keep their order.
  if (n->args().contains_object()) const_cast<fx::Argument&>(n->args()) = own_values(n->args());
  if (n->kwargs().contains_object()) const_cast<fx::Argument&>(n->kwargs()) = own_values(n->kwargs());
  if (auto* callable = exactly<PyCallable>(n->target().object_or_null()); callable && !callable->immortal) {
    n->set_target(fx::ObjectRef(fx::make_ref<PyCallable>(callable->object.get())));
  }
  if (auto* value = exactly<PyValue>(n->type().object_or_null())) {
    n->set_type(fx::ObjectRef(fx::make_ref<PyValue>(value->object.get(), true)));
  }
}

}  // namespace fxjit::inline v0::python
