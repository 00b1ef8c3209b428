#include "python/fx_graph.h"

#include <new>
#include <unordered_map>

#include "python/fx_args.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Node;

PyGraph* as_graph(PyObject* o) { return reinterpret_cast<PyGraph*>(o); }

// Graph → its PyGraph, not owned: an entry goes with the PyGraph.
std::unordered_map<const fx::Graph*, PyGraph*>& graphs() {
  static auto* map = new std::unordered_map<const fx::Graph*, PyGraph*>;
  return *map;
}

void adopt(PyGraph* g, fx::GraphPtr graph) {
  new (&g->graph) fx::GraphPtr(std::move(graph));
  new (&g->foreign) std::vector<PyObject*>();
  graphs()[g->graph.get()] = g;
}

template <class F>
void for_each_created(fx::Graph& graph, F&& f) {
  auto count = static_cast<uint32_t>(graph.created());
  bool root_seen = false;
  for (uint32_t i = 0; i < count; ++i) {
    Node* n = graph.node_by_id(i);
    root_seen |= n == graph.root();
    f(n);
  }
  if (!root_seen) f(graph.root());
}

// Visits each Python object that a node's own handles hold. A handle that someone else holds too (a C++ graph, a
// snapshot) is not this graph's alone, and what it holds is alive.
template <class F>
int visit_handles(Node* n, F&& visit) {
  if (auto* callable = exactly<PyCallable>(n->target().object_or_null())) {
    if (!callable->immortal && callable->use_count() == 1) {
      if (int r = visit(callable->object.get())) return r;
    }
  }
  if (auto* value = exactly<PyValue>(n->type().object_or_null()); value && value->use_count() == 1) {
    if (int r = visit(value->object.get())) return r;
  }
  for (const fx::Argument* a : {&n->args(), &n->kwargs()}) {
    if (int r = visit_values(*a, visit)) return r;
  }
  const fx::NodeMeta* meta = n->meta_if_any();
  auto* mine = meta ? exactly<PyMeta>(meta->extension.get()) : nullptr;
  if (mine && mine->dict && mine->use_count() == 1) return visit(mine->dict);
  return 0;
}

// Gives the wrappers up: each holds this graph, so they end the cycle.
void drop_wrappers(PyGraph* g) {
  if (!g->graph) return;
  for_each_created(*g->graph, [](Node* n) {
    if (auto* wrapper = static_cast<PyObject*>(n->wrapper())) {
      n->set_wrapper(nullptr);
      Py_DECREF(wrapper);
    }
  });
}

// The list of nodes, its iterator and the insert point begin alike: type, graph.
struct PyNodeList {
  PyObject_HEAD PyGraph* graph;
  bool reversed;
};
struct PyNodeIter {
  PyObject_HEAD PyGraph* graph;
  fx::Node* at;
  bool reversed, done;
};
struct PyInsertPoint {
  PyObject_HEAD PyGraph* graph;
  fx::InsertPoint saved;
};

PyGraph*& graph_field(PyObject* o) { return reinterpret_cast<PyNodeList*>(o)->graph; }

void small_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Py_CLEAR(graph_field(o));
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* new_small(PyTypeObject* type, PyGraph* g) {
  PyObject* o = check(type->tp_alloc(type, 0));
  graph_field(o) = g;
  Py_INCREF(g);
  return o;
}

Py_ssize_t list_length(PyObject* o) {
  return guarded_int([&] { return static_cast<int>(graph_of(graph_field(o)).size()); });
}

PyObject* list_iter(PyObject* o) {
  return guarded([&] {
    PyObject* it = new_small(state().node_iter, graph_field(o));
    auto* iter = reinterpret_cast<PyNodeIter*>(it);
    iter->at = graph_of(graph_field(o)).root();
    iter->reversed = reinterpret_cast<PyNodeList*>(o)->reversed;
    return it;
  });
}

// What follows is looked up when it is asked for: nodes may come and go meanwhile.
PyObject* iter_next(PyObject* o) {
  return guarded([&]() -> PyObject* {
    auto* iter = reinterpret_cast<PyNodeIter*>(o);
    graph_of(iter->graph);
    if (iter->done) return nullptr;
    fx::NodeList::iterator at(iter->at, iter->reversed);
    iter->at = *++at;
    if (iter->at->is_root()) {
      iter->done = true;
      return nullptr;
    }
    return wrap_node(iter->graph, iter->at);
  });
}

PyObject* list_reversed(PyObject* o, PyObject*) {
  return new_node_list(graph_field(o), !reinterpret_cast<PyNodeList*>(o)->reversed);
}

PyObject* insert_point_enter(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyObject* insert_point_exit(PyObject* o, PyObject*) {
  return guarded([&] {
    graph_of(graph_field(o)).set_insert_point(reinterpret_cast<PyInsertPoint*>(o)->saved);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef list_methods[] = {
    {"__reversed__", list_reversed, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef insert_point_methods[] = {
    {"__enter__", insert_point_enter, METH_NOARGS, nullptr},
    {"__exit__", insert_point_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot list_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(small_dealloc)},
    {Py_sq_length, reinterpret_cast<void*>(list_length)},
    {Py_tp_iter, reinterpret_cast<void*>(list_iter)},
    {Py_tp_methods, list_methods},
    {0, nullptr},
};
PyType_Slot iter_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(small_dealloc)},
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(iter_next)},
    {0, nullptr},
};
PyType_Slot insert_point_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(small_dealloc)},
    {Py_tp_methods, insert_point_methods},
    {0, nullptr},
};
constexpr unsigned int kSmall = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
PyType_Spec list_spec = {"fxjit.fx.graph._node_list", sizeof(PyNodeList), 0, kSmall, list_slots};
PyType_Spec iter_spec = {"fxjit.fx.graph._node_iterator", sizeof(PyNodeIter), 0, kSmall, iter_slots};
PyType_Spec insert_point_spec = {"fxjit.fx.graph._InsertPoint", sizeof(PyInsertPoint), 0, kSmall, insert_point_slots};

}  // namespace

PyObject* graph_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    PyObject* o = check(type->tp_alloc(type, 0));
    adopt(as_graph(o), fx::Graph::create());
    return o;
  });
}

int graph_traverse(PyObject* o, visitproc visit, void* arg) {
  PyGraph* g = as_graph(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(g->owning_module);
  Py_VISIT(g->dict);
  for (PyObject* f : g->foreign) Py_VISIT(f);
  if (!g->graph) return 0;
  bool exclusive = g->graph.use_count() == 1;
  int result = 0;
  for_each_created(*g->graph, [&](Node* n) {
    if (!result && n->wrapper()) result = visit(static_cast<PyObject*>(n->wrapper()), arg);
    if (!result && exclusive) result = visit_handles(n, [&](PyObject* held) { return visit(held, arg); });
  });
  return result;
}

int graph_clear(PyObject* o) {
  PyGraph* g = as_graph(o);
  Py_INCREF(o);  // the last wrapper may hold the last reference
  Py_CLEAR(g->owning_module);
  Py_CLEAR(g->dict);
  for (PyObject* f : std::exchange(g->foreign, {})) Py_DECREF(f);
  if (g->graph) {
    graphs().erase(g->graph.get());
    drop_wrappers(g);
    fx::GraphPtr last = std::move(g->graph);
  }
  Py_DECREF(o);
  return 0;
}

void graph_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyTypeObject* type = Py_TYPE(o);
  PyGraph* g = as_graph(o);
  if (g->weak) PyObject_ClearWeakRefs(o);
  Py_CLEAR(g->owning_module);
  Py_CLEAR(g->dict);
  for (PyObject* f : std::exchange(g->foreign, {})) Py_DECREF(f);
  if (g->graph) graphs().erase(g->graph.get());
  g->graph.~shared_ptr();
  g->foreign.~vector();
  type->tp_free(o);
  Py_DECREF(type);
}

int graph_init(PyObject*, PyObject*, PyObject*) { return 0; }

fx::Graph& graph_of(PyGraph* g) {
  if (!g->graph) raise(PyExc_RuntimeError, "this graph is gone");
  return *g->graph;
}

PyGraph* find_graph(const fx::Graph& graph) {
  auto it = graphs().find(&graph);
  return it == graphs().end() ? nullptr : it->second;
}

nb::object wrap_graph(const fx::GraphPtr& graph) {
  if (PyGraph* g = find_graph(*graph)) return nb::borrow(reinterpret_cast<PyObject*>(g));
  nb::object made = own(PyObject_CallNoArgs(state().graph_class));
  PyGraph* g = as_graph(made.ptr());
  graphs().erase(g->graph.get());
  g->graph = graph;
  graphs()[graph.get()] = g;
  return made;
}

PyObject* new_node_list(PyGraph* g, bool reversed) {
  return guarded([&] {
    PyObject* o = new_small(state().node_list, g);
    reinterpret_cast<PyNodeList*>(o)->reversed = reversed;
    return o;
  });
}

PyObject* new_insert_point(PyGraph* g, PyObject* node, bool after) {
  fx::Graph& graph = graph_of(g);
  fx::InsertPoint before = graph.insert_point();
  Node* n = node ? node_of(node) : nullptr;
  fx::InsertScope scope = after ? graph.inserting_after(n) : graph.inserting_before(n);
  scope.release();
  PyObject* o = new_small(state().insert_point, g);
  reinterpret_cast<PyInsertPoint*>(o)->saved = before;
  return o;
}

PyObject* hooks_in(PyGraph* g, const char* list) {
  if (!g->owning_module) return nullptr;
  PyObject** dict = _PyObject_GetDictPtr(g->owning_module);
  PyObject* hooks = dict && *dict ? PyDict_GetItemString(*dict, list) : nullptr;
  return hooks && PyList_Check(hooks) && PyList_GET_SIZE(hooks) > 0 ? hooks : nullptr;
}

void run_hooks(PyGraph* g, const char* list, std::initializer_list<std::pair<const char*, PyObject*>> args) {
  PyObject* hooks = hooks_in(g, list);
  if (!hooks) return;
  nb::object keywords = own(PyDict_New());
  nb::object positional = nb::borrow(state().empty_tuple);
  for (const auto& [name, value] : args) {
    if (!name) {
      positional = own(PyTuple_Pack(1, value));
    } else if (PyDict_SetItemString(keywords.ptr(), name, value) < 0) {
      throw PythonErrorSet{};
    }
  }
  nb::object all = own(PyList_AsTuple(hooks));
  for (nb::handle hook : all) own(PyObject_Call(hook.ptr(), positional.ptr(), keywords.ptr()));
}

fx::Node* make_node(PyGraph* g, fx::Opcode op, fx::Argument target, fx::Argument args, fx::Argument kwargs,
                    std::optional<std::string_view> name, fx::Argument type) {
  Node* n = graph_of(g).create_node(op, std::move(target), std::move(args), std::move(kwargs), name, std::move(type));
  if (g->owning_module) run_hooks(g, "_create_node_hooks", {{nullptr, own(wrap_node(g, n)).ptr()}});
  return n;
}

void add_graph_types(PyObject* module) {
  add_graph_type(module);
  state().node_list = add_type(module, &list_spec);
  state().node_iter = add_type(module, &iter_spec);
  state().insert_point = add_type(module, &insert_point_spec);
}

}  // namespace fxjit::inline v0::python
