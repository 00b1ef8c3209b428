#include "python/dict_watch.h"

#include <unordered_map>

#include "python/hot_call.h"

namespace fxjit::inline v0::python {

#if PY_VERSION_HEX < 0x030C0000

// CPython up to 3.11 keeps such a word itself.
const uint64_t* dict_version(PyObject* dict) { return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }

#else

namespace {

// The words of the dicts that were asked for. Never freed: the last dicts die after static objects do.
std::unordered_map<PyObject*, uint64_t>& words() {
  static auto* const all = new std::unordered_map<PyObject*, uint64_t>;
  return *all;
}

uint64_t last_version = 0;

// CPython calls this before it changes a watched dict, and when one dies.
int note_change(PyDict_WatchEvent event, PyObject* dict, PyObject*, PyObject*) {
  const auto it = words().find(dict);
  if (it == words().end()) return 0;
  if (event == PyDict_EVENT_DEALLOCATED) {
    words().erase(it);
  } else {
    it->second = ++last_version;
  }
  return 0;
}

// From 3.13 on the values of an object's dict may still be in the object, and assigning an attribute there is not told
// to anybody (3.13.0). An item that is taken out and put back, which needs no Python code and leaves the order, moves
// them into the dict for good.
bool owns_values(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030D0000
  const auto* d = reinterpret_cast<const PyDictObject*>(dict);
  if (!d->ma_values) return true;
  PyRef last = PyRef::steal(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyDict_Type), "popitem", "O", dict));
  if (last) PyDict_SetItem(dict, PyTuple_GET_ITEM(last.get(), 0), PyTuple_GET_ITEM(last.get(), 1));
  PyErr_Clear();  // an empty one
  return !d->ma_values;
#else
  (void)dict;
  return true;
#endif
}

}  // namespace

const uint64_t* dict_version(PyObject* dict) {
  if (!owns_values(dict)) return nullptr;
  static const int watcher = PyDict_AddWatcher(note_change);  // an interpreter has eight
  if (watcher < 0 || PyDict_Watch(watcher, dict) < 0) {
    PyErr_Clear();
    return nullptr;
  }
  const auto [it, added] = words().try_emplace(dict);
  if (added) it->second = ++last_version;
  return &it->second;  // elements of this map stay where they are
}

#endif

}  // namespace fxjit::inline v0::python
