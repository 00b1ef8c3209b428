// What the hot call watches: comparing a word or a few pointers tells whether it has changed.
#include <c10/core/DefaultDtype.h>

#include "python/dict_watch.h"
#include "python/hot_call.h"

namespace fxjit::inline v0::python {

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

WatchedDict watch_dict(PyObject* dict) {
  const uint64_t* word = dict_version(dict);
  return {PyRef::borrow(dict), word, word ? *word : 0};
}

WatchedCell watch_cell(PyObject* cell) { return {PyRef::borrow(cell), PyRef::borrow(PyCell_GET(cell))}; }

WatchedList watch_list(PyObject* list) {
  WatchedList w{PyRef::borrow(list), {}};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) w.items.push_back(PyRef::borrow(PyList_GET_ITEM(list, i)));
  return w;
}

WatchedSet watch_set(PyObject* set) {
  WatchedSet w{PyRef::borrow(set), {}};
  const auto* s = reinterpret_cast<const PySetObject*>(set);
  for (Py_ssize_t i = 0; i <= s->mask; ++i) w.slots.push_back(PyRef::borrow(s->table[i].key));
  return w;
}

bool unchanged(const Watched& s) {
  if (c10::get_default_dtype_as_scalartype() != s.default_dtype) return false;
  for (const WatchedDict& w : s.dicts)
    if (!w.word || *w.word != w.version) return false;
  for (const WatchedCell& w : s.cells)
    if (PyCell_GET(w.cell.get()) != w.content.get()) return false;
  for (const WatchedList& w : s.lists) {
    if (PyList_GET_SIZE(w.list.get()) != static_cast<Py_ssize_t>(w.items.size())) return false;
    for (size_t i = 0; i < w.items.size(); ++i)
      if (PyList_GET_ITEM(w.list.get(), i) != w.items[i].get()) return false;
  }
  for (const WatchedSet& w : s.sets) {
    const auto* set = reinterpret_cast<const PySetObject*>(w.set.get());
    if (static_cast<size_t>(set->mask) + 1 != w.slots.size()) return false;
    for (size_t i = 0; i < w.slots.size(); ++i)
      if (set->table[i].key != w.slots[i].get()) return false;
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

}  // namespace fxjit::inline v0::python
