#include "python/hot_call.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <bit>

#include "fxjit/errors.h"
#include "python/dict_watch.h"
#include "python/fx_objects.h"
#include "python/torch_python.h"
#include "python/warnings.h"

namespace fxjit::inline v0::python {
namespace {

// Below this many input elements a call takes some 20 us at most: giving the GIL away would cost more than it brings.
constexpr int64_t kReleaseGilElements = 32 * 1024;
constexpr size_t kInlineTensors = 16;

struct CompiledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  HotState* state;
  PyObject* weak_references;
};

PyTypeObject* compiled_type = nullptr;

PyObject* call_slow(HotState& s, PyObject* const* args, size_t n, PyObject* names) {
  PyRef positional = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
  if (!positional) return nullptr;
  for (size_t i = 0; i < n; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(positional.get(), i, args[i]);
  }
  PyRef keywords = PyRef::steal(PyDict_New());
  if (!keywords) return nullptr;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, i), args[n + i]) < 0) return nullptr;
  PyRef slow = s.slow;  // the call may replace it
  return PyObject_CallFunctionObjArgs(slow.get(), positional.get(), keywords.get(), nullptr);
}

// Constants are equal if they are the same object, or of one exact type with equal value. Only immutable simple types
// are ever constants, so comparing them runs no user code.
bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return memcmp(&x, &y, sizeof x) == 0;
  }
  if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a)) return false;
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

}  // namespace

bool unchanged(const HotState& s) {
  for (const WatchedDict& w : s.watched)
    if (!w.word || *w.word != w.version) return false;
  for (const WatchedCell& w : s.cells)
    if (PyCell_GET(w.cell.get()) != w.content.get()) return false;
  for (const WatchedList& w : s.lists) {
    if (PyList_GET_SIZE(w.list.get()) != static_cast<Py_ssize_t>(w.items.size())) return false;
    for (size_t i = 0; i < w.items.size(); ++i)
      if (PyList_GET_ITEM(w.list.get(), i) != w.items[i].get()) return false;
  }
  for (const WatchedType& w : s.types)
    if (!w.version || reinterpret_cast<PyTypeObject*>(w.type.get())->tp_version_tag != w.version) return false;
  for (const WatchedFunction& w : s.functions) {
    const auto* f = reinterpret_cast<const PyFunctionObject*>(w.function.get());
    if (f->func_code != w.code.get() || f->func_defaults != w.defaults.get() ||
        f->func_kwdefaults != w.keyword_defaults.get())
      return false;
  }
  return true;
}

namespace {

// Small arrays on the stack, large ones on the heap.
template <class T>
struct Buffer {
  explicit Buffer(size_t n) : data(n <= kInlineTensors ? inline_.data() : (heap_ = std::vector<T>(n)).data()) {}
  std::array<T, kInlineTensors> inline_;  // of pointers: not filled, which would cost as much as the guards
  std::vector<T> heap_;
  T* data;
};

// The bits of a number of this exact type; an int beyond 64 bits is none.
bool read_number(PyObject* o, NumberKind kind, int64_t* bits) {
  if (kind == NumberKind::Float) {
    if (!PyFloat_CheckExact(o)) return false;
    *bits = std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  *bits = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow == 0;
}

// Borrowed tensors of the arguments and attributes of `v`, and its numbers; false where an argument is not what `v` is
// for.
bool gather(const Variant& v, PyObject* const* args, PyObject** objects, c10::TensorImpl** in, int64_t* scalars,
            int64_t& elements) {
  size_t k = 0;
  const bool numbers = !v.numbers.empty();
  if (numbers) scalars += v.function->tensor_count();
  for (size_t i = 0; i < v.constants.size(); ++i) {
    if (numbers && v.numbers[i] != NumberKind::None) {
      if (!read_number(args[i], v.numbers[i], scalars++)) return false;
      continue;
    }
    if (PyObject* constant = v.constants[i].get()) {
      if (!same_constant(constant, args[i])) return false;
      continue;
    }
    if (!is_plain_tensor(args[i])) return false;
    objects[k] = args[i];
    in[k] = tensor_of(args[i]).unsafeGetTensorImpl();
    ++k;
  }
  for (const AttributeSource& a : v.attributes) {
    PyObject* o = PyDict_GetItemWithError(a.dict.get(), a.key.get());
    if (!o || !is_plain_tensor(o)) return false;
    objects[k] = o;
    in[k] = tensor_of(o).unsafeGetTensorImpl();
    ++k;
  }
  for (size_t i = 0; i < k; ++i) {
    if (in[i]->key_set().has(c10::DispatchKey::NestedTensor)) return false;  // these have no sizes to ask for
    elements += in[i]->sym_numel().maybe_as_int().value_or(0);
  }
  return true;
}

driver::Function::Outcome call_without_gil(driver::Function& f, std::span<PyObject* const> objects,
                                           c10::TensorImpl** in, std::span<c10::TensorImpl*> out,
                                           const int64_t* scalars) {
  // Attributes are borrowed from dicts that another thread may change meanwhile.
  std::vector<PyRef> keep;
  for (PyObject* o : objects) keep.push_back(PyRef::borrow(o));
  struct Released {
    PyThreadState* thread = PyEval_SaveThread();
    ~Released() { PyEval_RestoreThread(thread); }
  } released;
  return f.try_call(in, out, scalars);
}

PyObject* wrap_owned(c10::TensorImpl*& t) {
  return THPVariable_Wrap(at::TensorBase(c10::intrusive_ptr<c10::TensorImpl>::reclaim(std::exchange(t, nullptr))));
}

PyObject* make_result(const driver::Function::Outcome& o, PyObject** objects, c10::TensorImpl** out, size_t results) {
  const auto& structure = static_cast<const PyStructure&>(o.structure->as_object());
  const bool one = results == 1 && o.outputs.size() == 1 && o.outputs[0].kind == driver::OutputSource::Result;
  if (one && structure.kind == PyStructure::Single && out[0]) return wrap_owned(out[0]);
  Buffer<PyRef> made(results), leaves(o.outputs.size());
  for (size_t i = 0; i < results; ++i) {
    if (!out[i]) continue;
    made.data[i] = PyRef::steal(wrap_owned(out[i]));
    if (!made.data[i]) return nullptr;
  }
  for (size_t i = 0; i < o.outputs.size(); ++i) {
    const driver::OutputSource& source = o.outputs[i];
    leaves.data[i] =
        source.kind == driver::OutputSource::Input ? PyRef::borrow(objects[source.index]) : made.data[source.index];
  }
  return structure.build(std::span(leaves.data, o.outputs.size()));
}

}  // namespace

PyObject* call_variant(const Variant& v, PyObject* const* args) {
  size_t n = v.function->tensor_count();
  Buffer<PyObject*> objects(n);
  Buffer<c10::TensorImpl*> in(n);
  Buffer<int64_t> scalars(v.numbers.empty() ? 0 : n + v.function->number_count());
  int64_t elements = 0;
  if (!gather(v, args, objects.data, in.data, scalars.data, elements)) return nullptr;
  for (const SizeGuard& guard : v.guards)
    if (!holds(guard, std::span<c10::TensorImpl* const>(in.data, n))) return nullptr;
  size_t results = v.function->max_results();
  Buffer<c10::TensorImpl*> out(results);
  std::fill_n(out.data, results, nullptr);  // a specialisation may have fewer than the largest
  WarningCollector warnings;
  PyObject* result = nullptr;
  try {
    driver::Function::Outcome outcome =
        elements > kReleaseGilElements
            ? call_without_gil(*v.function, {objects.data, n}, in.data, std::span(out.data, results), scalars.data)
            : v.function->try_call(in.data, std::span(out.data, results), scalars.data);
    if (outcome.specialisation) result = make_result(outcome, objects.data, out.data, results);
  } catch (const Error&) {
    set_python_error();
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
  }
  if (!warnings.give()) Py_CLEAR(result);
  return result;
}

namespace {

PyObject* compiled_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  HotState& s = *reinterpret_cast<CompiledObject*>(self)->state;
  size_t n = PyVectorcall_NARGS(nargsf);
  if (names || s.variants.empty() || at::impl::torch_function_mode_enabled() || driver::Recording::active() ||
      !unchanged(s))
    return call_slow(s, args, n, names);
  for (size_t i = 0; i < s.variants.size(); ++i) {
    std::shared_ptr<Variant> v = s.variants[i];
    if (v->constants.size() != n) continue;
    PyObject* result = call_variant(*v, args);
    if (result) {
      if (i && i < s.variants.size() && s.variants[i] == v) std::swap(s.variants[0], s.variants[i]);
      return result;
    }
    if (PyErr_Occurred()) return nullptr;
  }
  return call_slow(s, args, n, names);
}

PyObject* compiled_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *slow, *companion;
  if (!PyArg_ParseTuple(args, "OO", &slow, &companion)) return nullptr;
  auto* self = reinterpret_cast<CompiledObject*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = compiled_vectorcall;
  self->state = new HotState;
  self->state->slow = PyRef::borrow(slow);
  self->state->companion = PyRef::borrow(companion);
  return reinterpret_cast<PyObject*>(self);
}

int compiled_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  HotState* s = reinterpret_cast<CompiledObject*>(self)->state;
  if (!s) return 0;
  Py_VISIT(s->slow.get());
  Py_VISIT(s->companion.get());
  for (const WatchedDict& w : s->watched) Py_VISIT(w.dict.get());
  for (const WatchedCell& w : s->cells) {
    Py_VISIT(w.cell.get());
    Py_VISIT(w.content.get());
  }
  for (const WatchedList& w : s->lists) {
    Py_VISIT(w.list.get());
    for (const PyRef& item : w.items) Py_VISIT(item.get());
  }
  for (const WatchedType& w : s->types) Py_VISIT(w.type.get());
  for (const WatchedFunction& w : s->functions)
    for (const PyRef* p : {&w.function, &w.code, &w.defaults, &w.keyword_defaults}) Py_VISIT(p->get());
  for (const auto& v : s->variants) {
    if (v.use_count() > 1) continue;  // a running call holds it too
    for (const PyRef& c : v->constants) Py_VISIT(c.get());
    for (const AttributeSource& a : v->attributes) {
      Py_VISIT(a.dict.get());
      Py_VISIT(a.key.get());
    }
  }
  return 0;
}

int compiled_clear(PyObject* self) {
  HotState* s = reinterpret_cast<CompiledObject*>(self)->state;
  if (!s) return 0;
  HotState old;
  std::swap(old, *s);
  return 0;
}

void compiled_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* o = reinterpret_cast<CompiledObject*>(self);
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  delete std::exchange(o->state, nullptr);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Everything else than the type's own names is the companion's to answer: its surface, or its target's attribute.
PyObject* compiled_getattro(PyObject* self, PyObject* name) {
  if (PyObject* found = PyObject_GenericGetAttr(self, name)) return found;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
  PyRef companion = reinterpret_cast<CompiledObject*>(self)->state->companion;
  if (!companion) return nullptr;
  PyErr_Clear();
  return PyObject_CallMethod(companion.get(), "get_attribute", "O", name);
}

int compiled_setattro(PyObject* self, PyObject* name, PyObject* value) {
  PyRef companion = reinterpret_cast<CompiledObject*>(self)->state->companion;
  if (!companion) return PyObject_GenericSetAttr(self, name, value);
  PyRef done = PyRef::steal(value ? PyObject_CallMethod(companion.get(), "set_attribute", "OO", name, value)
                                  : PyObject_CallMethod(companion.get(), "delete_attribute", "O", name));
  return done ? 0 : -1;
}

PyObject* compiled_repr(PyObject* self) {
  PyRef companion = reinterpret_cast<CompiledObject*>(self)->state->companion;
  return companion ? PyObject_Repr(companion.get()) : PyUnicode_FromString("<fxjit.compile result>");
}

// isinstance() asks for it: a compiled module counts as one, so that modules and containers take it for a child.
PyObject* compiled_class(PyObject* self, void*) {
  PyRef companion = reinterpret_cast<CompiledObject*>(self)->state->companion;
  PyObject* found = companion ? PyObject_GetAttrString(companion.get(), "shown_class") : nullptr;
  if (found) return found;
  PyErr_Clear();
  return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(self)));
}

PyGetSetDef compiled_properties[] = {{"__class__", compiled_class, nullptr, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};

// As a function in a class body it binds `self`.
PyObject* compiled_get(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

PyMemberDef compiled_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledObject, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot compiled_slots[] = {{Py_tp_new, reinterpret_cast<void*>(compiled_new)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(compiled_dealloc)},
                                {Py_tp_traverse, reinterpret_cast<void*>(compiled_traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(compiled_clear)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_getattro, reinterpret_cast<void*>(compiled_getattro)},
                                {Py_tp_setattro, reinterpret_cast<void*>(compiled_setattro)},
                                {Py_tp_repr, reinterpret_cast<void*>(compiled_repr)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(compiled_get)},
                                {Py_tp_members, compiled_members},
                                {Py_tp_getset, compiled_properties},
                                {0, nullptr}};

PyType_Spec compiled_spec = {"fxjit._C.Compiled", sizeof(CompiledObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, compiled_slots};

}  // namespace

WatchedDict watch_dict(PyObject* dict) {
  const uint64_t* word = dict_version(dict);
  return {PyRef::borrow(dict), word, word ? *word : 0};
}

// A class has no version until something was looked up in it.
WatchedType watch_type(PyObject* type) {
  PyRef found = PyRef::steal(PyObject_GetAttrString(type, "__init__"));
  if (!found) PyErr_Clear();
  return {PyRef::borrow(type), reinterpret_cast<PyTypeObject*>(type)->tp_version_tag};
}

WatchedFunction watch_function(PyObject* function) {
  const auto* f = reinterpret_cast<const PyFunctionObject*>(function);
  return {PyRef::borrow(function), PyRef::borrow(f->func_code), PyRef::borrow(f->func_defaults),
          PyRef::borrow(f->func_kwdefaults)};
}

bool add_compiled_type(PyObject* module) {
  compiled_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&compiled_spec));
  return compiled_type && PyModule_AddObjectRef(module, "Compiled", reinterpret_cast<PyObject*>(compiled_type)) == 0;
}

HotState* hot_state(PyObject* o) {
  if (Py_TYPE(o) == compiled_type) return reinterpret_cast<CompiledObject*>(o)->state;
  PyErr_Format(PyExc_TypeError, "expected a compiled callable, not %.200s", Py_TYPE(o)->tp_name);
  return nullptr;
}

}  // namespace fxjit::inline v0::python
