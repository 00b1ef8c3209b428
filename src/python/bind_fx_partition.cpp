// Orders, partitions and fusion: fxjit.fx.passes.infra.partitioner, utils.fuser_utils and tools_common are the faces.
#include "fxjit/fx/partitioner.h"
#include "fxjit/fx/topology.h"
#include "python/fx_args.h"
#include "python/fx_rewrite.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;
using fx::Node;

// A list of nodes of several graphs.
PyObject* nodes_to_python(const std::vector<Node*>& nodes) { return node_list(nullptr, nodes); }

std::unordered_set<std::string> names_argument(PyObject* names) {
  std::unordered_set<std::string> found;
  nb::object items = own(PySequence_List(names));
  for (nb::handle name : items) found.emplace(string_of(name.ptr(), "the name of an operator"));
  return found;
}

// propose_partitions(graph, is_supported, allows_single, non_compute_ops, allowed_single_ops) → [(id, nodes)]
PyObject* propose_partitions(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[5];
    parse_args("propose_partitions", {"graph", "is_supported", "allows_single", "non_compute_ops", "allowed_ops"}, 5,
               args, n, kw, a);
    PyGraph* graph = graph_argument(a[0], "graph");
    const fx::PartitionerOptions options{is_true(a[2]), names_argument(a[3]), names_argument(a[4])};
    const auto supported = [&](Node* node) {
      nb::object wrapped = own(wrap_node(graph, node));
      return is_true(own(PyObject_CallOneArg(a[1], wrapped.ptr())).ptr());
    };
    nb::object found = own(PyList_New(0));
    for (const fx::Partition& p : fx::propose_partitions(graph_of(graph), supported, options)) {
      nb::object row = own(PyTuple_Pack(2, own(PyLong_FromSize_t(p.id)).ptr(), own(node_list(graph, p.nodes)).ptr()));
      if (PyList_Append(found.ptr(), row.ptr()) < 0) throw PythonErrorSet{};
    }
    return found.release().ptr();
  });
}

PyObject* bookend_non_compute_nodes(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("bookend_non_compute_nodes", {"nodes", "non_compute_ops"}, 2, args, n, kw, a);
    return nodes_to_python(fx::bookend_non_compute_nodes(nodes_argument(a[0]), names_argument(a[1])));
  });
}

PyObject* topo_sort(PyObject*, PyObject* nodes) {
  return guarded([&] { return nodes_to_python(fx::topo_sort(nodes_argument(nodes))); });
}

PyObject* validate_partition(PyObject*, PyObject* nodes) {
  return guarded([&] { return PyBool_FromLong(fx::validate_partition(nodes_argument(nodes))); });
}

// validate_partitions(graph, [nodes])
PyObject* validate_partitions(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("validate_partitions", {"graph", "partitions"}, 2, args, n, kw, a);
    std::vector<std::vector<Node*>> groups;
    nb::object items = own(PySequence_List(a[1]));
    for (nb::handle nodes : items) groups.push_back(nodes_argument(nodes.ptr()));
    const fx::Graph& graph = graph_of(graph_argument(a[0], "graph"));
    for (const auto& group : groups) {
      for (Node* node : group) {
        if (&node->graph() == &graph && !node->erased()) continue;
        raise(PyExc_AssertionError, std::string(node->name()) + " is no node of the graph (any more)");
      }
    }
    return PyBool_FromLong(fx::validate_partitions(graph, groups));
  });
}

PyObject* stable_topological_sort(PyObject*, PyObject* graph) {
  return guarded([&] {
    fx::stable_topological_sort(graph_of(graph_argument(graph, "graph")));
    return Py_NewRef(Py_None);
  });
}

// legalize_graph(graph, urgent): functions in the set `urgent` come as early as they may.
PyObject* legalize_graph(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("legalize_graph", {"graph", "urgent"}, 2, args, n, kw, a);
    const auto urgent = [&](const Node& node) {
      PyObject* target = node.op() == fx::Opcode::CallFunction ? held_object(node.callable()) : nullptr;
      const int found = target ? PySet_Contains(a[1], target) : 0;
      if (found < 0) throw PythonErrorSet{};
      return found == 1;
    };
    fx::legalize_graph(graph_of(graph_argument(a[0], "graph")), urgent);
    return Py_NewRef(Py_None);
  });
}

// extract_subgraph(nodes, always_return_tuple) → (graph, inputs, outputs)
PyObject* extract_subgraph(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("extract_subgraph", {"nodes", "always_return_tuple"}, 2, args, n, kw, a);
    const fx::Subgraph part = fx::extract_subgraph(nodes_argument(a[0]), is_true(a[1]));
    for (Node* node : part.graph->nodes()) own_handles(node);
    return PyTuple_Pack(3, wrap_graph(part.graph).ptr(), own(nodes_to_python(part.inputs)).ptr(),
                        own(nodes_to_python(part.outputs)).ptr());
  });
}

// insert_subgraph_call(graph, name, inputs, outputs, as_tuple) → the call
PyObject* insert_subgraph_call(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[5];
    parse_args("insert_subgraph_call", {"graph", "name", "inputs", "outputs", "as_tuple"}, 5, args, n, kw, a);
    PyGraph* graph = graph_argument(a[0], "graph");
    HookScope hooks(graph);
    return wrap_node(graph, fx::insert_subgraph_call(graph_of(graph), string_of(a[1], "name"), nodes_argument(a[2]),
                                                     nodes_argument(a[3]), is_true(a[4])));
  });
}

PyMethodDef functions[] = {
    {"propose_partitions", as_method(propose_partitions), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"bookend_non_compute_nodes", as_method(bookend_non_compute_nodes), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"topo_sort", topo_sort, METH_O, "Nodes in a topological order."},
    {"validate_partition", validate_partition, METH_O, "Whether nodes may become one node."},
    {"validate_partitions", as_method(validate_partitions), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"stable_topological_sort", stable_topological_sort, METH_O, "Sorts a graph in place."},
    {"legalize_graph", as_method(legalize_graph), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"extract_subgraph", as_method(extract_subgraph), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"insert_subgraph_call", as_method(insert_subgraph_call), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_fx_partition(nb::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), functions) < 0) nb::raise_python_error();
}

}  // namespace fxjit::inline v0::python
