// Arguments of METH_FASTCALL | METH_KEYWORDS functions, matched to names by hand: PyArg_Parse costs more than a node.
#pragma once

#include <Python.h>

#include <algorithm>
#include <string>

#include "python/fx_objects.h"

namespace fxjit::inline v0::python {

// Fills out[i] (borrowed; null where absent) with the argument called names[i]. TypeError as Python would raise it.
template <size_t N>
void parse_args(const char* function, const char* const (&names)[N], size_t required, PyObject* const* args,
                Py_ssize_t nargs, PyObject* kwnames, PyObject* (&out)[N], size_t positional = N) {
  if (static_cast<size_t>(nargs) > positional) {
    raise(PyExc_TypeError, std::string(function) + "() takes at most " + std::to_string(positional) + " arguments (" +
                               std::to_string(nargs) + " given)");
  }
  for (size_t i = 0; i < N; ++i) out[i] = static_cast<Py_ssize_t>(i) < nargs ? args[i] : nullptr;
  Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, k);
    size_t i = 0;
    while (i < N && PyUnicode_CompareWithASCIIString(key, names[i]) != 0) ++i;
    if (i == N) {
      raise(PyExc_TypeError, std::string(function) + "() got an unexpected keyword argument '" +
                                 nb::cast<std::string>(nb::str(nb::handle(key))) + "'");
    }
    if (out[i]) {
      raise(PyExc_TypeError,
            std::string(function) + "() got multiple values for argument '" + std::string(names[i]) + "'");
    }
    out[i] = args[nargs + k];
  }
  for (size_t i = 0; i < required; ++i) {
    if (!out[i]) raise(PyExc_TypeError, std::string(function) + "() missing required argument: '" + names[i] + "'");
  }
}

inline PyObject* text(std::string_view s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

// The text of a str, which must outlive it; TypeError "<what> must be a str" for anything else.
inline std::string_view string_of(PyObject* o, const char* what) {
  Py_ssize_t size = 0;
  const char* s = PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, &size) : nullptr;
  if (!s) {
    PyErr_Clear();
    raise(PyExc_TypeError, std::string(what) + " must be a str, not " + Py_TYPE(o)->tp_name);
  }
  return {s, static_cast<size_t>(size)};
}

inline PyObject* or_none(PyObject* o) { return o ? o : Py_None; }
inline bool is_given(PyObject* o) { return o && o != Py_None; }

template <class F>
PyCFunction as_method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

// A name as a template argument.
template <size_t N>
struct Name {
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }  // NOLINT: a literal is a name
  char text[N];
};

// F(self, argument), whose argument may be given by name: what METH_O cannot do.
template <Name Function, Name Parameter, auto F>
PyObject* one_argument(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  if (n == 1 && !kw) return F(self, args[0]);
  return guarded([&] {
    PyObject* a[1];
    parse_args(Function.text, {Parameter.text}, 1, args, n, kw, a);
    return F(self, a[0]);
  });
}

}  // namespace fxjit::inline v0::python
