// The type of what fxjit.compile returns.
#include <Python.h>
#include <structmember.h>

#include "python/hot_call.h"

namespace fxjit::inline v0::python {
namespace {

struct CompiledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  HotState* state;
  PyObject* weak_references;
};

PyTypeObject* compiled_type = nullptr;

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  return call_compiled(*reinterpret_cast<CompiledObject*>(self)->state, args, nargsf, names);
}

PyObject* compiled_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *slow, *companion;
  if (!PyArg_ParseTuple(args, "OO", &slow, &companion)) return nullptr;
  auto* self = reinterpret_cast<CompiledObject*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = vectorcall;
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
  const Watched& watched = s->watched;
  for (const WatchedDict& w : watched.dicts) Py_VISIT(w.dict.get());
  for (const WatchedCell& w : watched.cells) {
    Py_VISIT(w.cell.get());
    Py_VISIT(w.content.get());
  }
  for (const WatchedList& w : watched.lists) {
    Py_VISIT(w.list.get());
    for (const PyRef& item : w.items) Py_VISIT(item.get());
  }
  for (const WatchedSet& w : watched.sets) {
    Py_VISIT(w.set.get());
    for (const PyRef& slot : w.slots) Py_VISIT(slot.get());
  }
  for (const WatchedType& w : watched.types) Py_VISIT(w.type.get());
  for (const WatchedFunction& w : watched.functions)
    for (const PyRef* p : {&w.function, &w.code, &w.defaults, &w.keyword_defaults}) Py_VISIT(p->get());
  for (const auto& v : s->variants) {
    if (v.use_count() > 1) continue;  // a running call holds it too
    for (const PyRef* p : {&v->names, &v->generic, &v->root}) Py_VISIT(p->get());
    for (const PyRef& c : v->constants) Py_VISIT(c.get());
    for (const AttributeSource& a : v->attributes) {
      Py_VISIT(a.dict.get());
      Py_VISIT(a.key.get());
    }
  }
  for (const EagerCall& call : s->eager) {
    for (const PyRef* p : {&call.target, &call.names, &call.reason}) Py_VISIT(p->get());
    for (const PyRef& c : call.constants) Py_VISIT(c.get());
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
