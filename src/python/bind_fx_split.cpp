// Splitting of graphs: fxjit.fx.passes.split_module is the face.
#include "fxjit/fx/split_module.h"
#include "python/fx_args.h"
#include "python/fx_rewrite.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;
using fx::Node;

nb::object targets_to_python(const fx::TargetMap& targets) {
  nb::object dict = own(PyDict_New());
  for (const auto& [name, path] : targets) {
    if (PyDict_SetItem(dict.ptr(), own(text(name)).ptr(), own(text(path)).ptr()) < 0) throw PythonErrorSet{};
  }
  return dict;
}

nb::object new_graph(const fx::GraphPtr& graph) {
  for (Node* n : graph->nodes()) own_handles(n);
  return wrap_graph(graph);
}

// split_graph(graph, callback, flags, partition_affix, needs): flags are keep_original_order, keep_original_node_name
// and keep_original_input_name; needs is None or maps a node to a list of nodes. Returns the outer graph, its targets
// and a list of (name, graph, targets), where targets are dicts.
PyObject* split_graph(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[5];
    parse_args("split_graph", {"graph", "callback", "flags", "partition_affix", "needs"}, 5, args, n, kw, a);
    PyGraph* graph = graph_argument(a[0], "graph");
    if (!PyTuple_Check(a[2]) || PyTuple_GET_SIZE(a[2]) != 3) raise(PyExc_TypeError, "flags must be three bools");
    fx::SplitOptions options;
    options.keep_original_order = is_true(PyTuple_GET_ITEM(a[2], 0));
    options.keep_original_node_name = is_true(PyTuple_GET_ITEM(a[2], 1));
    options.keep_original_input_name = is_true(PyTuple_GET_ITEM(a[2], 2));
    if (is_given(a[3])) options.partition_affix = string_of(a[3], "partition_affix");
    const auto ask = [&](PyObject* function, Node* node) {
      nb::object wrapped = own(wrap_node(graph, node));
      return own(PyObject_CallOneArg(function, wrapped.ptr()));
    };
    if (is_given(a[4])) options.needs = [&](Node* node) { return nodes_argument(ask(a[4], node).ptr()); };
    const auto callback = [&](Node* node) { return from_python(ask(a[1], node).ptr(), nullptr); };
    if (!graph->owning_module) raise(PyExc_ValueError, "only the graph of a GraphModule can be split");
    const auto root = fx::make_ref<PyModule>(graph->owning_module);
    const fx::SplitGraph split = fx::split_graph(graph_of(graph), *root, callback, options);
    nb::object parts = own(PyList_New(0));
    for (const fx::SplitPartition& part : split.partitions) {
      nb::object row = own(PyTuple_Pack(3, own(text(part.name)).ptr(), new_graph(part.graph).ptr(),
                                        targets_to_python(part.targets).ptr()));
      if (PyList_Append(parts.ptr(), row.ptr()) < 0) throw PythonErrorSet{};
    }
    return PyTuple_Pack(3, new_graph(split.graph).ptr(), targets_to_python(split.targets).ptr(), parts.ptr());
  });
}

PyMethodDef functions[] = {
    {"split_graph", as_method(split_graph), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_fx_split(nb::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), functions) < 0) nb::raise_python_error();
}

}  // namespace fxjit::inline v0::python
