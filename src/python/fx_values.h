// Python objects as the fx core carries them, and the conversion of arguments between both sides.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "fxjit/function_ref.h"
#include "fxjit/fx/argument.h"
#include "fxjit/fx/callable.h"
#include "fxjit/fx/graph.h"
#include "fxjit/fx/module.h"
#include "fxjit/fx/node_meta.h"

namespace fxjit::inline v0::python {

struct PyGraph;

// An owned reference inside an fx::Object. Dropped under the GIL, on whatever thread the last owner goes.
class PyHandle {
 public:
  explicit PyHandle(PyObject* borrowed) : p_(borrowed) { Py_INCREF(p_); }
  PyHandle(const PyHandle&) = delete;
  PyHandle& operator=(const PyHandle&) = delete;
  ~PyHandle();
  PyObject* get() const { return p_; }

 private:
  PyObject* p_;
};

// `o` as a T if it is exactly that: what dynamic_cast says for a final class, without its walk over the bases.
template <class T>
T* exactly(fx::Object* o) {
  static_assert(std::is_final_v<T>);
  return o && typeid(*o) == typeid(T) ? static_cast<T*>(o) : nullptr;
}

size_t hash_object(PyObject* o);
bool equal_objects(PyObject* a, PyObject* b);

// Any Python object that has no counterpart among the kinds of Argument.
class PyValue final : public fx::Object {
 public:
  // `annotation`: printed as a type of a signature is, not as a value.
  explicit PyValue(PyObject* o, bool annotation = false) : object(o), annotation(annotation) {}
  fx::ObjectKind object_kind() const override;
  std::string type_name() const override;
  const void* identity() const override { return object.get(); }
  size_t hash() const override { return hash_object(object.get()); }
  bool equal(const fx::Object& other) const override;
  void print(std::string& out) const override;
  void print_repr(std::string& out) const override;
  void traverse(fx::ObjectVisitor& visitor) const override { visitor.foreign(object.get()); }

  PyHandle object;
  const bool annotation;
};

// What call_function calls: any Python callable.
class PyCallable final : public fx::Callable {
 public:
  explicit PyCallable(PyObject* o) : object(o) {}
  ~PyCallable() override { delete names_.load(std::memory_order_relaxed); }
  std::string type_name() const override;
  const void* identity() const override { return object.get(); }
  size_t hash() const override { return hash_object(object.get()); }
  bool equal(const fx::Object& other) const override;
  std::string_view qualified_name() const override { return names().qualified; }
  std::string_view base_name() const override { return names().base; }
  std::string pretty_name() const override { return names().pretty; }
  fx::Value call(std::span<const fx::Value> args, const fx::Value& kwargs) const override;
  bool is_impure(const fx::Argument& args, const fx::Argument& kwargs, bool impure_random) const override;
  bool is_composite() const override;
  fx::Argument trace_body(fx::TracerBase& tracer, std::span<const fx::Argument> args,
                          const fx::Argument& kwargs) const override;
  bool always_leaf() const override;
  void traverse(fx::ObjectVisitor& visitor) const override { visitor.foreign(object.get()); }

  PyHandle object;
  bool immortal = false;  // one of operator's functions: never visited, never wrapped again

 private:
  struct Names {
    std::string base, qualified, pretty;
  };
  const Names& names() const;
  mutable std::atomic<const Names*> names_ = nullptr;  // made under the GIL, read without
};

// An nn.Module.
class PyModule final : public fx::Module {
 public:
  explicit PyModule(PyObject* o) : object(o) {}
  const void* identity() const override { return object.get(); }
  std::string class_name() const override;
  std::vector<fx::Attribute> attributes() const override;
  fx::ObjectRef attribute(std::string_view name) const override;
  fx::Value call(std::span<const fx::Value> args, const fx::Value& kwargs) override;
  bool is_impure() const override;
  void traverse(fx::ObjectVisitor& visitor) const override { visitor.foreign(object.get()); }

  PyHandle object;
};

// node.meta. Nodes traced in one module scope share a PyMeta without dict until somebody asks for theirs; with stack
// traces each has its own, shared with its copies.
class PyMeta final : public fx::MetaExtension {
 public:
  PyMeta() = default;
  PyMeta(PyObject* module_stack, PyObject* path, PyObject* type);
  ~PyMeta() override;
  std::string type_name() const override { return "dict"; }
  fx::Ref<fx::MetaExtension> clone() const override;
  bool empty() const override;
  void traverse(fx::ObjectVisitor& visitor) const override;
  // The text of the stack trace, borrowed; null without one. Frames are turned into text at the first question.
  PyObject* stack_trace() const;
  // A PyMeta of one node, with its dict.
  static fx::Ref<PyMeta> own(const PyMeta* shared);

  PyObject* dict = nullptr;
  // Owned: keys and values of an OrderedDict in turn, a tuple that scopes inside of this one begin with; or a copy of a
  // stack of another type. Made anew for the dict.
  PyObject* module_stack = nullptr;
  PyObject *path = nullptr, *type = nullptr;  // the module scope, for node_name_to_scope
  mutable PyObject* trace = nullptr;          // owned: frames that torch's profiler has gathered, or their text
  bool forward_only = false;                  // which frames count: Tracer._record_forward_stack_traces_only
};

// Arguments. `owner` is the graph they become part of: nodes of other graphs are kept alive by it. Null for values
// that stay outside of graphs. Anything at all converts: what has no kind of its own becomes a PyValue.
fx::Argument from_python(PyObject* o, PyGraph* owner);
nanobind::object to_python(const fx::Argument& a, PyGraph* owner);
// node.args and node.kwargs: a tuple, an immutable_dict.
nanobind::object args_to_python(const fx::Argument& args, PyGraph* owner);
nanobind::object kwargs_to_python(const fx::Argument& kwargs, PyGraph* owner);

// A constant that is the same object each time: None, bools, dtypes, layouts …; false where `o` is something else.
bool constant_from_python(PyObject* o, fx::Argument& out);

// The type of a node.
fx::Argument annotation_from_python(PyObject* o, PyGraph* owner);

fx::Ref<PyCallable> callable_from_python(PyObject* o);
// The object behind a handle: the Python object itself, or what Python finds under a C++ callable's name.
nanobind::object object_to_python(const fx::Object& o);
// The Python object that a handle holds, borrowed; null for objects of other floors.
PyObject* held_object(const fx::Object& o);

// A copy of a node shares its handles with the original. Each handle is to belong to one graph, or the collector cannot
// tell whether a cycle runs through it.
void own_handles(fx::Node* n);

// Visits the Python objects inside an argument that nobody else shares: each reference that it alone holds, once.
int visit_values(const fx::Argument& a, FunctionRef<int(PyObject*)> visit);

// Called at import.
void init_constants();

}  // namespace fxjit::inline v0::python
