// Life of the Python graph: making, the collector, iteration, insert points.
#pragma once

#include "python/fx_objects.h"

namespace fxjit::inline v0::python {

PyObject* graph_new(PyTypeObject* type, PyObject*, PyObject*);
int graph_init(PyObject*, PyObject*, PyObject*);
int graph_traverse(PyObject* o, visitproc visit, void* arg);
int graph_clear(PyObject* o);
void graph_dealloc(PyObject* o);

// While it lives, the core's graph knows its owner: Python keeps the owner in the wrapper.
class OwnerScope {
 public:
  explicit OwnerScope(PyGraph* g)
      : graph_(graph_of(g)), module_(g->owning_module ? fx::make_ref<PyModule>(g->owning_module) : nullptr) {
    graph_.set_owning_module(module_.get());
  }
  OwnerScope(const OwnerScope&) = delete;
  ~OwnerScope() { graph_.set_owning_module(nullptr); }

 private:
  fx::Graph& graph_;
  fx::Ref<PyModule> module_;
};

PyObject* node_replace_uses(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* kw);
void add_graph_type(PyObject* module);  // bind_fx_graph.cpp

PyObject* new_node_list(PyGraph* g, bool reversed);
PyObject* new_insert_point(PyGraph* g, PyObject* node, bool after);

}  // namespace fxjit::inline v0::python
