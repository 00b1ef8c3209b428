// fxjit.fx.Graph: the part of it that is not Python.
#include <Python.h>
#include <structmember.h>

#include <cstddef>

#include "python/fx_args.h"
#include "python/fx_graph.h"
#include "python/fx_rewrite.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;
using fx::Node;

PyGraph* as_graph(PyObject* o) { return reinterpret_cast<PyGraph*>(o); }
fx::Graph& self_graph(PyObject* o) { return graph_of(as_graph(o)); }

PyObject* graph_str(PyObject* o) {
  return guarded([&] { return text(self_graph(o).to_string()); });
}

Argument args_argument(PyObject* o, PyGraph* g) {
  if (!is_given(o) || (PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 0)) return {};
  if (!PyTuple_Check(o)) {
    if (PyObject_IsTrue(o) == 0) return {};
    std::string type = nb::cast<std::string>(nb::repr(reinterpret_cast<PyObject*>(Py_TYPE(o))));
    raise(PyExc_AssertionError, "args must be a tuple, got " + type);
  }
  return from_python(o, g);
}

Argument kwargs_argument(PyObject* o, PyGraph* g) {
  if (!is_given(o)) return {};
  if (!PyDict_Check(o)) {
    if (PyObject_IsTrue(o) == 0) return {};
    std::string type = nb::cast<std::string>(nb::repr(reinterpret_cast<PyObject*>(Py_TYPE(o))));
    raise(PyExc_AssertionError, "kwargs must be a dict, got " + type);
  }
  return PyDict_GET_SIZE(o) ? from_python(o, g) : Argument();
}

// create_node(op, target, args, kwargs, name, type_expr)
PyObject* graph_create_node(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[6];
    parse_args("create_node", {"op", "target", "args", "kwargs", "name", "type_expr"}, 2, args, n, kw, a);
    PyGraph* g = as_graph(o);
    self_graph(o);
    std::optional<std::string_view> name;
    if (is_given(a[4])) name = string_of(a[4], "name");
    Argument positional = args_argument(a[2], g), keywords = kwargs_argument(a[3], g);
    fx::Opcode op = opcode_of(a[0]);
    Argument target;
    if (op == fx::Opcode::CallFunction && PyCallable_Check(a[1])) {
      target = fx::ObjectRef(callable_from_python(a[1]));
    } else {
      target = from_python(a[1], g);  // of the wrong kind: the core says so
    }
    Argument type = annotation_from_python(or_none(a[5]), g);
    return wrap_node(
        g, make_node(g, op, std::move(target), std::move(positional), std::move(keywords), name, std::move(type)));
  });
}

PyObject* graph_erase_node(PyObject* o, PyObject* node) {
  return guarded([&] {
    Node* n = node_of(node);
    if (&n->graph() == &self_graph(o) && n->num_users() == 0 && !n->erased()) {
      run_hooks(as_graph(o), "_erase_node_hooks", {{nullptr, node}});
    } else if (n->erased()) {
      std::string message = "erase_node(" + std::string(n->name()) + ") on an already erased node";
      if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw PythonErrorSet{};
      return Py_NewRef(Py_None);
    }
    self_graph(o).erase_node(n);
    return Py_NewRef(Py_None);
  });
}

// What a Python function maps a node to.
auto transform_with(PyObject* function, PyGraph* from, PyGraph* to) {
  return [=](Node* n) {
    nb::object node = own(wrap_node(from, n));
    return from_python(own(PyObject_CallOneArg(function, node.ptr())).ptr(), to);
  };
}

PyObject* graph_node_copy(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("node_copy", {"node", "arg_transform"}, 1, args, n, kw, a);
    Node* source = node_of(a[0]);
    PyGraph* from = reinterpret_cast<PyNode*>(a[0])->graph;
    Node* made = nullptr;
    const HookScope hooks(as_graph(o));
    if (is_given(a[1])) {
      made = self_graph(o).node_copy(*source, transform_with(a[1], from, as_graph(o)));
    } else {
      if (from != as_graph(o)) from_python(a[0], as_graph(o));  // its inputs stay nodes of that graph
      made = self_graph(o).node_copy(*source);
    }
    own_handles(made);
    return wrap_node(as_graph(o), made);
  });
}

// What the nodes of a graph are in the graph that it is copied to: by id, and for nodes of other graphs as well.
struct CopyMap {
  const fx::Graph* from;
  std::vector<Argument> values;
  std::vector<bool> known;
  fx::NodeMap others;

  explicit CopyMap(const fx::Graph& g) : from(&g), values(g.created()), known(g.created()) {}
  bool contains(const Node* n) const {
    return &n->graph() != from ? others.contains(n) : n->id() < known.size() && known[n->id()];
  }
  void set(const Node* n, Argument value) {
    if (&n->graph() != from) {
      others[n] = std::move(value);
    } else {
      values[n->id()] = std::move(value);
      known[n->id()] = true;
    }
  }
  Argument operator()(Node* n) const {
    if (!contains(n)) throw KeyError(std::string(n->name()));
    return &n->graph() == from ? values[n->id()] : others.at(n);
  }
};

using Copies = std::vector<std::pair<Node*, Node*>>;

// Copies the nodes of `from` that `map` lacks, and adds them to it and to `copies`. The mapped value of the output,
// which is put into `output`.
std::optional<Argument> copy_nodes(PyGraph* from, PyGraph* to, CopyMap& map, Copies& copies, Node*& output) {
  fx::Graph& target = graph_of(to);
  // Nodes that come into `from` meanwhile, by a copy into the same graph or by a hook, are none of those to copy.
  const size_t created = graph_of(from).created();
  for (Node* n : graph_of(from).nodes()) {
    if (n->id() >= created || map.contains(n)) continue;
    if (n->op() == fx::Opcode::Output) {
      output = n;
      return fx::map_arg(n->arg(0), map);
    }
    Node* copy = target.node_copy(*n, map);
    own_handles(copy);
    map.set(n, copy);
    copies.push_back({n, copy});
  }
  return std::nullopt;
}

// val_map[old] = copy. One thing after the other: wrappers of one graph lie together then, and the dict fills in order,
// which takes half the time of doing all of it for each node.
void add_copies(PyGraph* from, PyGraph* to, const Copies& copies, PyObject* val_map) {
  for (const auto& pair : copies) Py_DECREF(wrap_node(from, pair.first));
  for (const auto& pair : copies) Py_DECREF(wrap_node(to, pair.second));
  for (const auto& [old, copy] : copies) {
    auto *key = static_cast<PyObject*>(old->wrapper()), *value = static_cast<PyObject*>(copy->wrapper());
    if (PyDict_SetItem(val_map, key, value) < 0) throw PythonErrorSet{};
  }
}

// The same for a dict (null: no node is known, and nobody is to be told), which has what was copied even after an
// error.
std::optional<Argument> copy_nodes(PyGraph* from, PyGraph* to, PyObject* val_map, Node*& output) {
  CopyMap map(graph_of(from));
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; val_map && PyDict_Next(val_map, &at, &key, &value);) {
    if (is_node(key)) map.set(node_of(key), from_python(value, to));
  }
  Copies copies;
  copies.reserve(graph_of(from).size());
  std::optional<Argument> result;
  try {
    result = copy_nodes(from, to, map, copies, output);
  } catch (...) {
    const nb::error_scope keep;
    if (val_map) add_copies(from, to, copies, val_map);
    throw;
  }
  if (val_map) add_copies(from, to, copies, val_map);
  return result;
}

// graph_copy(g, val_map, return_output_node=False): val_map is a dict from nodes to anything, and is filled. None, for
// Graph.__deepcopy__: nobody asks.
PyObject* graph_graph_copy(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* kw) {
  return guarded([&]() -> PyObject* {
    PyObject* a[3];
    parse_args("graph_copy", {"g", "val_map", "return_output_node"}, 2, args, nargs, kw, a);
    PyObject* val_map = is_given(a[1]) ? a[1] : nullptr;
    if (!is_graph(a[0]) || (val_map && !PyDict_Check(val_map))) {
      raise(PyExc_TypeError, "graph_copy(g, val_map): a Graph and a dict");
    }
    PyGraph *from = as_graph(a[0]), *to = as_graph(o);
    Node* output = nullptr;
    const HookScope hooks(to);
    std::optional<Argument> result = copy_nodes(from, to, val_map, output);
    if (!result) return Py_NewRef(Py_None);
    nb::object rv = to_python(*result, to);
    if (!a[2] || PyObject_IsTrue(a[2]) != 1) return rv.release().ptr();
    nb::object out = own(wrap_node(from, output));
    return PyTuple_Pack(2, rv.ptr(), out.ptr());
  });
}

PyObject* graph_lint(PyObject* o, PyObject*) {
  return guarded([&] {
    PyObject* owner = as_graph(o)->owning_module;
    fx::Ref<PyModule> module = owner ? fx::make_ref<PyModule>(owner) : nullptr;
    self_graph(o).lint(module.get());
    return Py_NewRef(Py_None);
  });
}

PyObject* graph_dce(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("_eliminate_dead_code", {"is_impure_node", "impure_random"}, 0, args, n, kw, a);
    PyGraph* g = as_graph(o);
    bool random = !a[1] || PyObject_IsTrue(a[1]) == 1;
    auto ask = [&](const Node& node) {
      nb::object wrapped = own(wrap_node(g, const_cast<Node*>(&node)));
      nb::object answer = own(PyObject_CallOneArg(a[0], wrapped.ptr()));
      return PyObject_IsTrue(answer.ptr()) == 1;
    };
    FunctionRef<bool(const Node&)> callback;
    if (is_given(a[0])) callback = ask;
    const OwnerScope owner(g);
    const HookScope hooks(g);
    return PyBool_FromLong(self_graph(o).eliminate_dead_code(callback, random));
  });
}

PyObject* graph_find_nodes(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[3];
    parse_args("find_nodes", {"op", "target", "sort"}, 1, args, n, kw, a, 0);
    fx::Opcode op = opcode_of(a[0]);
    if (op == fx::Opcode::CallFunction && !is_given(a[1])) {
      raise(PyExc_AssertionError, "target must not be None for call_function op");
    }
    Argument target;
    if (is_given(a[1])) {
      target = PyUnicode_Check(a[1]) ? from_python(a[1], nullptr) : Argument(fx::ObjectRef(callable_from_python(a[1])));
    }
    bool sort = !a[2] || PyObject_IsTrue(a[2]) == 1;
    return node_list(as_graph(o), self_graph(o).find_nodes(op, target, sort));
  });
}

PyObject* graph_snapshot(PyObject* o, PyObject*) {
  return guarded([&] {
    fx::GraphPtr copy = self_graph(o).copy();
    for (Node* n : copy->nodes()) own_handles(n);
    return wrap_graph(copy).release().ptr();
  });
}

PyObject* graph_insert(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw, bool after) {
  return guarded([&] {
    PyObject* a[1];
    parse_args(after ? "inserting_after" : "inserting_before", {"n"}, 0, args, n, kw, a);
    return new_insert_point(as_graph(o), is_given(a[0]) ? a[0] : nullptr, after);
  });
}
PyObject* graph_inserting_before(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return graph_insert(o, args, n, kw, false);
}
PyObject* graph_inserting_after(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return graph_insert(o, args, n, kw, true);
}

PyObject* graph_create_name(PyObject* o, PyObject* candidate) {
  return guarded([&] { return text(self_graph(o).create_name(string_of(candidate, "candidate"))); });
}
PyObject* graph_target_to_str(PyObject*, PyObject* target) {
  return guarded([&] {
    Argument t =
        PyUnicode_Check(target) ? from_python(target, nullptr) : Argument(fx::ObjectRef(callable_from_python(target)));
    return text(fx::Graph::target_to_name(t));
  });
}
PyObject* graph_tabular(PyObject* o, PyObject*) {
  return guarded([&] { return text(self_graph(o).format_tabular()); });
}
PyObject* graph_output_node(PyObject* o, PyObject*) {
  return guarded([&] {
    Node* n = self_graph(o).output_node();
    if (!n) raise(PyExc_AssertionError, "Expected output node, but the graph has none");
    return wrap_node(as_graph(o), n);
  });
}
PyObject* graph_clear_meta(PyObject* o, PyObject*) {
  return guarded([&] {
    for (Node* n : self_graph(o).nodes()) {
      if (n->meta_if_any()) n->meta() = fx::NodeMeta();
    }
    return Py_NewRef(Py_None);
  });
}

PyMethodDef graph_methods[] = {
    {"create_node", as_method(graph_create_node), METH_FASTCALL | METH_KEYWORDS,
     "create_node($self, op, target, args=None, kwargs=None, name=None, type_expr=None)\n--\n\n"
     "Makes a node at the insert point."},
    {"erase_node", as_method(one_argument<"erase_node", "to_erase", graph_erase_node>), METH_FASTCALL | METH_KEYWORDS,
     "erase_node($self, to_erase)\n--\n\nRemove a node that nobody uses."},
    {"node_copy", as_method(graph_node_copy), METH_FASTCALL | METH_KEYWORDS,
     "node_copy($self, node, arg_transform=None)\n--\n\n"
     "Copies a node into this graph; arg_transform says what its input nodes become, by default themselves."},
    {"graph_copy", as_method(graph_graph_copy), METH_FASTCALL | METH_KEYWORDS,
     "graph_copy($self, g, val_map, return_output_node=False)\n--\n\n"
     "Copies the nodes of g but its output to the insert point; val_map says what nodes of g are here already, and is "
     "filled. Returns what g returns, mapped; with return_output_node a pair of that and the output node of g."},
    {"lint", graph_lint, METH_NOARGS, "lint($self)\n--\n\nCheck ownership, order, names, opcodes and targets."},
    {"_eliminate_dead_code", as_method(graph_dce), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"find_nodes", as_method(graph_find_nodes), METH_FASTCALL | METH_KEYWORDS,
     "find_nodes($self, *, op, target=None, sort=True)\n--\n\nThe nodes of an opcode and target; in program order if "
     "sort."},
    {"output_node", graph_output_node, METH_NOARGS, "output_node($self)\n--\n\nThe output node."},
    {"inserting_before", as_method(graph_inserting_before), METH_FASTCALL | METH_KEYWORDS,
     "inserting_before($self, n=None)\n--\n\nNew nodes go before n, None: to the start; until the end of the with "
     "statement."},
    {"inserting_after", as_method(graph_inserting_after), METH_FASTCALL | METH_KEYWORDS,
     "inserting_after($self, n=None)\n--\n\nNew nodes go behind n, None: to the end; until the end of the with "
     "statement."},
    {"_create_name", graph_create_name, METH_O, nullptr},
    {"_target_to_str", graph_target_to_str, METH_O, nullptr},
    {"_format_tabular", graph_tabular, METH_NOARGS, nullptr},
    {"_clear_nodes", graph_clear_meta, METH_NOARGS, nullptr},
    {"_snapshot", graph_snapshot, METH_NOARGS, "A copy that shares no handle with this graph."},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* get_nodes(PyObject* o, void*) { return new_node_list(as_graph(o), false); }
PyObject* get_owner(PyObject* o, void*) { return Py_NewRef(or_none(as_graph(o)->owning_module)); }
int set_owner(PyObject* o, PyObject* value, void*) {
  Py_XSETREF(as_graph(o)->owning_module, is_given(value) ? Py_NewRef(value) : nullptr);
  return 0;
}
PyObject* get_root(PyObject* o, void*) {
  return guarded([&] { return wrap_node(as_graph(o), self_graph(o).root()); });
}
PyObject* get_len(PyObject* o, void*) {
  return guarded([&] { return PyLong_FromSize_t(self_graph(o).size()); });
}
PyObject* get_version(PyObject* o, void*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(self_graph(o).version()); });
}

PyGetSetDef graph_getset[] = {
    {"nodes", get_nodes, nullptr, "the nodes in program order; the graph may be edited while they are visited",
     nullptr},
    {"owning_module", get_owner, set_owner, nullptr, nullptr},
    {"_owning_module", get_owner, set_owner, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"_root", get_root, nullptr, nullptr, nullptr},
    {"_len", get_len, nullptr, nullptr, nullptr},
    {"_version", get_version, nullptr, "grows with every change of structure", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef graph_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyGraph, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyGraph, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot graph_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(graph_new)},
    {Py_tp_init, reinterpret_cast<void*>(graph_init)},
    {Py_tp_dealloc, reinterpret_cast<void*>(graph_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(graph_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(graph_clear)},
    {Py_tp_str, reinterpret_cast<void*>(graph_str)},
    {Py_tp_getset, graph_getset},
    {Py_tp_members, graph_members},
    {Py_tp_methods, graph_methods},
    {0, nullptr},
};
PyType_Spec graph_spec = {"fxjit._C.Graph", sizeof(PyGraph), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, graph_slots};

}  // namespace

void add_graph_type(PyObject* module) { state().graph_base = add_type(module, &graph_spec); }

}  // namespace fxjit::inline v0::python
