// Whether a dict has changed, by comparing one word.
#pragma once

#include <Python.h>

#include <cstdint>

namespace fxjit::inline v0::python {

// A word that no other dict has, and that is another one after each change of the dict; it may be read as long as the
// dict lives. Null where this interpreter has none to give: whatever rests on the dict has to be checked in another way
// then.
const uint64_t* dict_version(PyObject* dict);

}  // namespace fxjit::inline v0::python
