// The Python faces of the fx core. They are plain C types, not nanobind classes: a traced node costs a fraction of a
// microsecond only if operators are number slots, hooks are looked up once, and a wrapper is one allocation.
//
// Ownership: a PyGraph owns the Graph. A PyNode is made when Python first sees the node, sits in the node's wrapper
// slot (which owns a reference) until the graph dies, and owns its PyGraph: identity, free attributes and weak
// references hold. These cycles are the collector's: PyGraph visits the wrappers and every Python object that its nodes
// carry.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "fxjit/errors.h"
#include "fxjit/fx/graph.h"
#include "python/fx_values.h"

namespace fxjit::inline v0::python {

namespace nb = nanobind;

struct PyGraph {
  PyObject_HEAD fx::GraphPtr graph;  // null only after the collector has taken the graph apart
  PyObject* owning_module;           // a GraphModule, or null
  PyObject* dict;
  PyObject* weak;
  std::vector<PyObject*> foreign;  // graphs whose nodes occur as arguments here, which lint reports
};

struct PyNode {
  PyObject_HEAD fx::Node* node;
  PyGraph* graph;
  PyObject* dict;
  PyObject* weak;
};

struct PyProxy {
  PyObject_HEAD fx::Node* node;  // null: an Attribute that nobody has used as a value
  PyGraph* graph;                // owner of `node`
  PyObject* tracer;
  PyObject* root;  // Attribute only: the proxy it belongs to, and its name
  PyObject* attr;
  PyObject* dict;
  PyObject* weak;
};

// Python objects that the C side needs. Filled once at import, never freed.
struct State {
  PyTypeObject *graph_base, *node, *proxy, *attribute, *tracer_base, *node_list, *node_iter, *users, *insert_point;
  PyObject* graph_class;       // fxjit.fx.Graph, which derives from graph_base
  PyTypeObject* tracer_class;  // fxjit.fx.Tracer, which derives from tracer_base
  PyObject *immutable_list, *immutable_dict, *empty_dict, *empty_tuple;
  PyObject* trace_error;
  PyObject* internal_error;
  PyObject* helpers;         // the module fxjit.fx._helpers
  PyObject* tensor_methods;  // the set of torch.overrides
  PyObject* traceback_dict;  // globals of torch.fx.traceback
  PyObject* getattr_function;
};
State& state();

// A Python error is set and travels through C++ frames.
struct PythonErrorSet {};

// Turns the exception in flight into a Python error.
void set_python_error() noexcept;

template <class F>
PyObject* guarded(F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <class F>
int guarded_int(F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

inline PyObject* check(PyObject* p) {
  if (!p) throw PythonErrorSet{};
  return p;
}
inline nb::object own(PyObject* p) { return nb::steal(check(p)); }
[[noreturn]] void raise(PyObject* type, const std::string& message);
// o.name(argument). (PyObject_CallMethod's "O" would spread a tuple.)
nb::object call_method(PyObject* o, const char* name, PyObject* argument);
// Calls fxjit.fx._helpers.<name>.
nb::object call_helper(const char* name, std::initializer_list<PyObject*> args);

// Graphs
inline bool is_graph(PyObject* o) {
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == state().graph_class || PyObject_TypeCheck(o, state().graph_base);
}
fx::Graph& graph_of(PyGraph* g);
// The PyGraph of a graph, made if there is none yet: a new reference.
nb::object wrap_graph(const fx::GraphPtr& graph);
// Borrowed, or null where no PyGraph exists.
PyGraph* find_graph(const fx::Graph& graph);
// Creates a node at the insert point and calls the owning module's hooks.
fx::Node* make_node(PyGraph* g, fx::Opcode op, fx::Argument target, fx::Argument args, fx::Argument kwargs,
                    std::optional<std::string_view> name, fx::Argument type);
fx::Opcode opcode_of(PyObject* name);
PyObject* opcode_name(fx::Opcode op);  // borrowed
// The list of that name of the owning module, borrowed; null without one, and where it is empty.
PyObject* hooks_in(PyGraph* g, const char* list);
// Calls owning_module.<list>[i](args...) for each hook in the list.
void run_hooks(PyGraph* g, const char* list, std::initializer_list<std::pair<const char*, PyObject*>> args);

// Nodes
inline bool is_node(PyObject* o) { return Py_TYPE(o) == state().node || PyObject_TypeCheck(o, state().node); }
// A new reference to the node's wrapper. `g` is the graph's PyGraph, or null: it is looked up.
PyObject* wrap_node(PyGraph* g, fx::Node* n);
fx::Node* node_of(PyObject* o);  // TypeError for anything but a node
PyObject* node_list(PyGraph* g, const std::vector<fx::Node*>& nodes);
PyObject* node_meta(fx::Node* n);  // borrowed dict, made at first use

// Proxies and tracers
inline bool is_proxy(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == state().proxy || t == state().attribute || PyType_IsSubtype(t, state().proxy);
}
inline bool is_tracer(PyObject* o) { return PyObject_TypeCheck(o, state().tracer_base); }
// The node behind a proxy (an Attribute makes its own now) and the graph that owns it, borrowed.
fx::Node* proxy_node(PyObject* proxy, PyGraph** graph);
fx::Node* proxy_node_of_struct(PyObject* proxy, PyGraph** graph);  // the same, whatever a subclass says
PyObject* proxy_tracer(PyObject* proxy);                           // borrowed
// Proxy.__torch_function__: `kwargs` may be null.
PyObject* torch_function(PyObject* cls, PyObject* function, PyObject* args, PyObject* kwargs);
// proxy.__class__. Libraries ask isinstance(x, torch.fx.Proxy) to know that they are traced: ours say yes. Subclasses
// stand for themselves.
PyObject* proxy_class(PyObject* proxy, void*);
PyObject* new_proxy(PyGraph* g, fx::Node* n, PyObject* tracer);

// Adds the types to the module; they throw PythonErrorSet.
void add_graph_types(PyObject* module);
void add_users_type(PyObject* module);
void add_node_types(PyObject* module);
void add_proxy_types(PyObject* module);
void add_tracer_types(PyObject* module);
void add_module_functions(PyObject* module);
void add_patch_functions(PyObject* module);
void add_text_functions(PyObject* module);
PyTypeObject* add_type(PyObject* module, PyType_Spec* spec, PyTypeObject* base = nullptr);

}  // namespace fxjit::inline v0::python
