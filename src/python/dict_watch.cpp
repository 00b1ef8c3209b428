#include "python/dict_watch.h"

#include <unordered_map>

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

// CPython calls this before it changes a watched dict, and when one dies.
int note_change(PyDict_WatchEvent event, PyObject* dict, PyObject*, PyObject*) {
  const auto it = words().find(dict);
  if (it == words().end()) return 0;
  if (event == PyDict_EVENT_DEALLOCATED) {
    words().erase(it);
  } else {
    ++it->second;
  }
  return 0;
}

}  // namespace

const uint64_t* dict_version(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030D0000
  // An object's dict whose values are still in the object: 3.13.0 tells nobody when an attribute is assigned.
  if (reinterpret_cast<PyDictObject*>(dict)->ma_values) return nullptr;
#endif
  static const int watcher = PyDict_AddWatcher(note_change);  // an interpreter has eight
  if (watcher < 0 || PyDict_Watch(watcher, dict) < 0) {
    PyErr_Clear();
    return nullptr;
  }
  return &words().try_emplace(dict).first->second;  // elements of this map stay where they are
}

#endif

}  // namespace fxjit::inline v0::python
