// Life of the Python graph: making, the collector, iteration, insert points.
#pragma once

#include "python/fx_objects.h"

namespace fxjit::inline v0::python {

PyObject* graph_new(PyTypeObject* type, PyObject*, PyObject*);
int graph_init(PyObject*, PyObject*, PyObject*);
int graph_traverse(PyObject* o, visitproc visit, void* arg);
int graph_clear(PyObject* o);
void graph_dealloc(PyObject* o);

void add_graph_type(PyObject* module);  // bind_fx_graph.cpp

PyObject* new_node_list(PyGraph* g, bool reversed);
PyObject* new_insert_point(PyGraph* g, PyObject* node, bool after);

}  // namespace fxjit::inline v0::python
