// The callable that fxjit.compile returns: a C type with a vectorcall that goes from Python tensors to machine code and
// back without Python code in between. Everything else (capture, recording, containers among the arguments, attributes
// of the module) is its companion's, a Python object.
#pragma once

#include <Python.h>
#include <c10/core/ScalarType.h>

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
// A set and what is in the slots of its table.
struct WatchedSet {
  PyRef set;
  std::vector<PyRef> slots;
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

// What the traces of a callable rest on.
struct Watched {
  std::vector<WatchedDict> dicts;
  std::vector<WatchedCell> cells;
  std::vector<WatchedList> lists;
  std::vector<WatchedSet> sets;
  std::vector<WatchedType> types;
  std::vector<WatchedFunction> functions;
  c10::ScalarType default_dtype = c10::ScalarType::Float;  // of tensors that a trace made of numbers
};

// Each as it is now.
WatchedDict watch_dict(PyObject* dict);
WatchedCell watch_cell(PyObject* cell);
WatchedList watch_list(PyObject* list);
WatchedSet watch_set(PyObject* set);
WatchedType watch_type(PyObject* type);
WatchedFunction watch_function(PyObject* function);
// Whether nothing of it has changed since.
bool unchanged(const Watched& watched);

enum class NumberKind : uint8_t { None, Float, Int };

// What a program may decide by: compiled code compares it, the generic form does not.
struct TensorKind {
  uint64_t keys;
  c10::ScalarType dtype;
  int64_t dim;
  bool operator==(const TensorKind&) const = default;
};
TensorKind kind_of(const c10::TensorImpl& t);

// One way to call: which arguments are tensors, which are numbers, which are these constants. Arguments by keyword
// stand behind the others.
struct Variant {
  std::shared_ptr<driver::Function> function;
  PyRef names;                      // of the arguments by keyword, in their order; null where there are none
  std::vector<PyRef> constants;     // one per argument; null for a tensor or a number
  std::vector<NumberKind> numbers;  // one per argument; empty where none is a number
  std::vector<AttributeSource> attributes;
  std::vector<SizeGuard> guards;  // over the tensors: arguments, then attributes
  PyRef generic, root;  // the _C.GenericForward for calls that compiled code is not for, with its module; or null
  std::vector<size_t> placeholders;  // of the generic form: which arguments they are
  std::vector<TensorKind> kinds;     // of the tensors, where the program decides by more than sizes; else empty
};

// Calls that cannot be captured, as long as nothing that is watched changes: they go to the target. Constants as above,
// without numbers.
struct EagerCall {
  PyRef target, names, reason;
  std::vector<PyRef> constants;
  uint64_t calls = 0;
};

struct HotState {
  std::vector<std::shared_ptr<Variant>> variants;  // most recent first
  std::vector<EagerCall> eager;
  Watched watched;
  PyRef slow;       // slow(args tuple, kwargs dict or None)
  PyRef companion;  // has its attributes
};

// Adds the type `_C.Compiled` to the module. Returns false with a Python error set.
bool add_compiled_type(PyObject* module);
// The state of a `_C.Compiled`; TypeError (null) for anything else.
HotState* hot_state(PyObject* o);

// Of a float or an int; TypeError for anything else.
NumberKind number_kind(PyObject* o);

// The call of a `_C.Compiled`, as vectorcall hands it over.
PyObject* call_compiled(HotState& s, PyObject* const* args, size_t nargsf, PyObject* names);
// Calls with one argument per entry of v.constants. Null without a Python error: no specialisation fits.
PyObject* call_variant(const Variant& v, PyObject* const* args);

}  // namespace fxjit::inline v0::python
