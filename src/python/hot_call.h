// The callable that fxjit.compile returns: a C type with a vectorcall that goes from Python tensors to machine code and
// back without Python code in between. Everything else (capture, recording, keyword arguments, attributes of the
// module) is its companion's, a Python object.
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "driver/function.h"
#include "fxjit/fx/object.h"
#include "python/size_guard.h"

namespace fxjit::inline v0::python {

// Owned reference to a Python object; made and dropped under the GIL.
class PyRef {
 public:
  PyRef() = default;
  static PyRef borrow(PyObject* p) {
    Py_XINCREF(p);
    return PyRef(p);
  }
  static PyRef steal(PyObject* p) { return PyRef(p); }
  PyRef(const PyRef& o) : PyRef(borrow(o.p_).release()) {}
  PyRef(PyRef&& o) noexcept : p_(o.release()) {}
  PyRef& operator=(PyRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  PyObject* release() { return std::exchange(p_, nullptr); }

 private:
  explicit PyRef(PyObject* p) : p_(p) {}
  PyObject* p_ = nullptr;
};

// The structure of a result, kept by a Specialisation: how Python objects are made of its tensors.
class PyStructure final : public fx::Object {
 public:
  enum Kind : uint8_t { Single, Tuple, List, Built } kind;
  // Built: called with the list of tensors.
  PyStructure(Kind k, PyRef builder) : kind(k), builder_(std::move(builder)) {}
  ~PyStructure() override;
  std::string type_name() const override { return "structure"; }
  PyObject* build(std::span<PyRef> leaves) const;  // null with a Python error set

 private:
  PyRef builder_;
};

// A module attribute that is a tensor input: dict[key], read at each call.
struct AttributeSource {
  PyRef dict, key;
};

// A dict whose content the trace rests on. While its version word stands, nothing in it has changed; without a word
// each call takes the checked way.
struct WatchedDict {
  PyRef dict;
  const uint64_t* word;
  uint64_t version;
};

// A closure cell and what was in it; a list and its items. They have no version word, but comparing a pointer is as
// cheap; equal values in other objects are sorted out by the checked way.
struct WatchedCell {
  PyRef cell, content;
};
struct WatchedList {
  PyRef list;
  std::vector<PyRef> items;
};

// A class and its version, which changes with every change of it or of a base. 0 is no version: a class that has used
// up its thousand gets none any more.
struct WatchedType {
  PyRef type;
  uint32_t version = 0;
};
// A function and what it was made of.
struct WatchedFunction {
  PyRef function, code, defaults, keyword_defaults;
};

enum class NumberKind : uint8_t { None, Float, Int };

// One way to call: which arguments are tensors, which are numbers, which are these constants.
struct Variant {
  std::shared_ptr<driver::Function> function;
  std::vector<PyRef> constants;     // one per positional argument; null for a tensor or a number
  std::vector<NumberKind> numbers;  // one per positional argument; empty where none is a number
  std::vector<AttributeSource> attributes;
  std::vector<SizeGuard> guards;  // over the tensors: arguments, then attributes
};

struct HotState {
  std::vector<std::shared_ptr<Variant>> variants;  // most recent first
  std::vector<WatchedDict> watched;
  std::vector<WatchedCell> cells;
  std::vector<WatchedList> lists;
  std::vector<WatchedType> types;
  std::vector<WatchedFunction> functions;
  PyRef slow;       // slow(args tuple, kwargs dict or None)
  PyRef companion;  // has its attributes
};

// Adds the type `_C.Compiled` to the module. Returns false with a Python error set.
bool add_compiled_type(PyObject* module);
// Whether everything that is watched is as it was when watch() looked at it.
bool unchanged(const HotState& s);
// The state of a `_C.Compiled`; TypeError (null) for anything else.
HotState* hot_state(PyObject* o);

WatchedDict watch_dict(PyObject* dict);
WatchedType watch_type(PyObject* type);
WatchedFunction watch_function(PyObject* function);

// Calls with one positional argument per entry of v.constants. Null without a Python error: no specialisation fits.
PyObject* call_variant(const Variant& v, PyObject* const* args);

}  // namespace fxjit::inline v0::python
