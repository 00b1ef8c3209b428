// fxjit.fx.Node
#include <Python.h>
#include <structmember.h>

#include <bit>
#include <cstddef>

#include "python/fx_args.h"
#include "python/fx_graph.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;
using fx::Node;

PyNode* as_node(PyObject* o) { return reinterpret_cast<PyNode*>(o); }
Node* self_node(PyObject* o) {
  if (!as_node(o)->graph->graph) raise(PyExc_RuntimeError, "the graph of this node is gone");
  return as_node(o)->node;
}

int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(as_node(o)->graph);
  Py_VISIT(as_node(o)->dict);
  return 0;
}

int node_clear(PyObject* o) {
  // The graph stays: code that runs during collection may still read the node.
  Py_CLEAR(as_node(o)->dict);
  return 0;
}

void node_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyTypeObject* type = Py_TYPE(o);
  if (as_node(o)->weak) PyObject_ClearWeakRefs(o);
  Py_CLEAR(as_node(o)->dict);
  Py_CLEAR(as_node(o)->graph);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* node_repr(PyObject* o) {
  return guarded([&] {
    std::string_view name = self_node(o)->name();
    return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  });
}

// Program order; equality is identity.
PyObject* node_compare(PyObject* a, PyObject* b, int op) {
  if (op == Py_EQ || op == Py_NE) return PyBool_FromLong((a == b) == (op == Py_EQ));
  if (!is_node(a) || !is_node(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    const Node &x = *self_node(a), &y = *self_node(b);
    bool less = op == Py_LT || op == Py_GE ? x < y : y < x;
    return PyBool_FromLong(op == Py_LT || op == Py_GT ? less : !less);
  });
}

// The address, as for any object, but its low bits are those that differ: wrappers made one after the other are 64
// bytes apart, and hashed as Python does in steps of 16, a dict of them uses a quarter of its places first.
Py_hash_t node_hash(PyObject* o) {
  const auto address = reinterpret_cast<uintptr_t>(o);
  const auto hash = static_cast<Py_hash_t>(std::rotr(address, 6));
  return hash == -1 ? -2 : hash;
}

template <PyObject* (*get)(PyNode*, Node*)>
PyObject* getter(PyObject* o, void*) {
  return guarded([&] { return get(as_node(o), self_node(o)); });
}

PyObject* get_op(PyNode*, Node* n) { return Py_NewRef(opcode_name(n->op())); }
PyObject* get_name(PyNode*, Node* n) { return text(n->name()); }
PyObject* get_target(PyNode* o, Node* n) { return to_python(n->target(), o->graph).release().ptr(); }
PyObject* get_args(PyNode* o, Node* n) { return args_to_python(n->args(), o->graph).release().ptr(); }
PyObject* get_kwargs(PyNode* o, Node* n) { return kwargs_to_python(n->kwargs(), o->graph).release().ptr(); }
PyObject* get_type(PyNode* o, Node* n) { return to_python(n->type(), o->graph).release().ptr(); }
PyObject* get_meta(PyNode*, Node* n) { return Py_NewRef(node_meta(n)); }
PyObject* get_graph(PyNode* o, Node*) { return Py_NewRef(reinterpret_cast<PyObject*>(o->graph)); }
PyObject* get_next(PyNode* o, Node* n) { return wrap_node(o->graph, n->next()); }
PyObject* get_prev(PyNode* o, Node* n) { return wrap_node(o->graph, n->prev()); }
PyObject* get_erased(PyNode*, Node* n) { return PyBool_FromLong(n->erased()); }
PyObject* get_id(PyNode*, Node* n) { return PyLong_FromUnsignedLong(n->id()); }
PyObject* get_users(PyNode* o, Node*) {
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(state().users), reinterpret_cast<PyObject*>(o));
}
PyObject* get_inputs(PyNode* o, Node* n) {
  auto inputs = n->all_input_nodes();
  return node_list(o->graph, {inputs.begin(), inputs.end()});
}
PyObject* get_input_dict(PyNode* o, Node* n) {
  nb::object inputs = own(get_inputs(o, n));
  return call_method(reinterpret_cast<PyObject*>(&PyDict_Type), "fromkeys", inputs.ptr()).release().ptr();
}
PyObject* get_stack_trace(PyNode*, Node* n) {
  if (!n->meta_if_any()) Py_RETURN_NONE;
  PyObject* found = PyDict_GetItemString(node_meta(n), "stack_trace");
  return Py_NewRef(found ? found : Py_None);
}

template <void (*set)(PyNode*, Node*, PyObject*)>
int setter(PyObject* o, PyObject* value, void*) {
  return guarded_int([&] {
    if (!value) raise(PyExc_AttributeError, "attributes of a Node cannot be deleted");
    set(as_node(o), self_node(o), value);
    return 0;
  });
}

void set_op(PyNode*, Node* n, PyObject* v) { n->set_op(opcode_of(v)); }
void set_name(PyNode* o, Node* n, PyObject* v) {
  std::string_view name = string_of(v, "name");
  for (Node* user : n->users_vector()) {
    nb::object u = own(wrap_node(o->graph, user));
    run_hooks(o->graph, "_replace_hooks", {{"old", reinterpret_cast<PyObject*>(o)}, {"new", v}, {"user", u.ptr()}});
  }
  n->set_name(name);
}
void set_target(PyNode*, Node* n, PyObject* v) {
  if (PyUnicode_Check(v)) {
    n->set_target(string_of(v, "target"));
  } else if (PyCallable_Check(v)) {
    n->set_target(fx::ObjectRef(callable_from_python(v)));
  } else {
    raise(PyExc_ValueError,
          std::string("target has type ") + Py_TYPE(v)->tp_name + " but a str or a Callable is expected");
  }
}
void set_args(PyNode* o, Node* n, PyObject* v) {
  nb::object tuple = PyList_Check(v) ? own(PyList_AsTuple(v)) : nb::borrow(v);  // torch.fx takes a list here too
  n->set_args(from_python(tuple.ptr(), o->graph));
}
void set_kwargs(PyNode* o, Node* n, PyObject* v) { n->set_kwargs(from_python(v, o->graph)); }
void set_type(PyNode* o, Node* n, PyObject* v) { n->set_type(annotation_from_python(v, o->graph)); }
void set_meta(PyNode*, Node* n, PyObject* v) {
  if (!PyDict_Check(v)) raise(PyExc_TypeError, "meta must be a dict");
  node_meta(n);
  auto* meta = static_cast<PyMeta*>(n->meta().extension.get());
  Py_SETREF(meta->dict, Py_NewRef(v));
}
void set_stack_trace(PyNode*, Node* n, PyObject* v) {
  if (PyDict_SetItemString(node_meta(n), "stack_trace", v) < 0) throw PythonErrorSet{};
}

PyGetSetDef node_getset[] = {
    {"op", getter<get_op>, setter<set_op>, "placeholder, get_attr, call_function, call_method, call_module or output",
     nullptr},
    {"name", getter<get_name>, setter<set_name>, "unique within the graph", nullptr},
    {"target", getter<get_target>, setter<set_target>, "a callable for call_function, a str for the others", nullptr},
    {"args", getter<get_args>, setter<set_args>, "a tuple; assigning keeps the use lists right", nullptr},
    {"kwargs", getter<get_kwargs>, setter<set_kwargs>, "an immutable dict; assigning keeps the use lists right",
     nullptr},
    {"_args", getter<get_args>, nullptr, nullptr, nullptr},
    {"_kwargs", getter<get_kwargs>, nullptr, nullptr, nullptr},
    {"type", getter<get_type>, setter<set_type>, "the annotation", nullptr},
    {"meta", getter<get_meta>, setter<set_meta>, "a dict for the user and for passes; node_copy copies it", nullptr},
    {"graph", getter<get_graph>, nullptr, nullptr, nullptr},
    {"next", getter<get_next>, nullptr, nullptr, nullptr},
    {"prev", getter<get_prev>, nullptr, nullptr, nullptr},
    {"_next", getter<get_next>, nullptr, nullptr, nullptr},
    {"_prev", getter<get_prev>, nullptr, nullptr, nullptr},
    {"_erased", getter<get_erased>, nullptr, nullptr, nullptr},
    {"_id", getter<get_id>, nullptr, "order of creation within the graph", nullptr},
    {"users", getter<get_users>, nullptr, "the nodes that use this one, in the order of their first use", nullptr},
    {"all_input_nodes", getter<get_inputs>, nullptr, "distinct input nodes, args before kwargs", nullptr},
    {"_input_nodes", getter<get_input_dict>, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"stack_trace", getter<get_stack_trace>, setter<set_stack_trace>, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef node_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyObject* node_prepend(PyObject* o, PyObject* x) {
  return guarded([&] {
    self_node(o)->prepend(node_of(x));
    return Py_NewRef(Py_None);
  });
}
PyObject* node_append(PyObject* o, PyObject* x) {
  return guarded([&] {
    self_node(o)->append(node_of(x));
    return Py_NewRef(Py_None);
  });
}

PyObject* node_update_arg(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("update_arg", {"idx", "arg"}, 2, args, n, kw, a);
    Py_ssize_t i = PyLong_AsSsize_t(a[0]);
    if (i == -1 && PyErr_Occurred()) throw PythonErrorSet{};
    auto size = static_cast<Py_ssize_t>(self_node(o)->args().size());
    if (i < 0) i += size;
    if (i < 0 || i >= size) raise(PyExc_IndexError, "list assignment index out of range");
    self_node(o)->update_arg(static_cast<size_t>(i), from_python(a[1], as_node(o)->graph));
    return Py_NewRef(Py_None);
  });
}

PyObject* node_insert_arg(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("insert_arg", {"idx", "arg"}, 2, args, n, kw, a);
    Py_ssize_t i = PyLong_AsSsize_t(a[0]);
    if (i == -1 && PyErr_Occurred()) throw PythonErrorSet{};
    if (i < 0) {
      raise(PyExc_AssertionError, "insert_args index must be between 0 and len(self.args), got " + std::to_string(i));
    }
    self_node(o)->insert_arg(static_cast<size_t>(i), from_python(a[1], as_node(o)->graph));
    return Py_NewRef(Py_None);
  });
}

PyObject* node_update_kwarg(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("update_kwarg", {"key", "arg"}, 2, args, n, kw, a);
    self_node(o)->update_kwarg(string_of(a[0], "key"), from_python(a[1], as_node(o)->graph));
    return Py_NewRef(Py_None);
  });
}

PyObject* node_replace_input(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("replace_input_with", {"old_input", "new_input"}, 2, args, n, kw, a);
    PyGraph* g = as_node(o)->graph;
    Argument replacement = from_python(a[1], g);
    nb::object name = own(PyObject_Str(a[1]));
    run_hooks(g, "_replace_hooks", {{"old", a[0]}, {"new", name.ptr()}, {"user", o}});
    self_node(o)->replace_input_with(node_of(a[0]), replacement);
    return Py_NewRef(Py_None);
  });
}

PyObject* node_is_impure(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[1];
    parse_args("is_impure", {"impure_random"}, 0, args, n, kw, a);
    bool random = !a[0] || PyObject_IsTrue(a[0]) == 1;
    const Node* node = self_node(o);
    const OwnerScope owner(reinterpret_cast<PyNode*>(o)->graph);
    return PyBool_FromLong(node->is_impure(random));
  });
}

PyObject* node_format(PyObject* o, PyObject*) {
  return guarded([&] { return text(self_node(o)->format_node()); });
}

PyObject* node_rename(PyObject* o, PyObject* candidate) {
  return guarded([&] {
    self_node(o)->rename(string_of(candidate, "candidate"));
    return Py_NewRef(Py_None);
  });
}

PyMethodDef node_methods[] = {
    {"prepend", as_method(one_argument<"prepend", "x", node_prepend>), METH_FASTCALL | METH_KEYWORDS,
     "prepend($self, x)\n--\n\nMove x before this node."},
    {"append", as_method(one_argument<"append", "x", node_append>), METH_FASTCALL | METH_KEYWORDS,
     "append($self, x)\n--\n\nMove x behind this node."},
    {"update_arg", as_method(node_update_arg), METH_FASTCALL | METH_KEYWORDS,
     "update_arg($self, idx, arg)\n--\n\nReplace args[idx]."},
    {"insert_arg", as_method(node_insert_arg), METH_FASTCALL | METH_KEYWORDS,
     "insert_arg($self, idx, arg)\n--\n\nInsert before args[idx]."},
    {"update_kwarg", as_method(node_update_kwarg), METH_FASTCALL | METH_KEYWORDS,
     "update_kwarg($self, key, arg)\n--\n\nReplace or add kwargs[key]."},
    {"replace_all_uses_with", as_method(node_replace_uses), METH_FASTCALL | METH_KEYWORDS,
     "replace_all_uses_with($self, replace_with, delete_user_cb=None, *, propagate_meta=False)\n--\n\n"
     "Replace this node by another one in its users, those that delete_user_cb agrees to, and return these."},
    {"replace_input_with", as_method(node_replace_input), METH_FASTCALL | METH_KEYWORDS,
     "replace_input_with($self, old_input, new_input)\n--\n\nReplace a node among the arguments, at any depth."},
    {"is_impure", as_method(node_is_impure), METH_FASTCALL | METH_KEYWORDS,
     "is_impure($self, impure_random=True)\n--\n\nWhether the node must stay though nobody uses it."},
    {"_format", node_format, METH_NOARGS, nullptr},
    {"_rename", node_rename, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* node_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "nodes are made by Graph.create_node and its companions");
  return nullptr;
}

PyType_Slot node_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(node_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
    {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(node_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(node_hash)},
    {Py_tp_getset, node_getset},
    {Py_tp_members, node_members},
    {Py_tp_methods, node_methods},
    {0, nullptr},
};
PyType_Spec node_spec = {"fxjit.fx.node.Node", sizeof(PyNode), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, node_slots};

}  // namespace

Node* node_of(PyObject* o) {
  if (!is_node(o)) raise(PyExc_TypeError, std::string("expected a Node, not ") + Py_TYPE(o)->tp_name);
  return self_node(o);
}

PyObject* wrap_node(PyGraph* g, Node* n) {
  if (n->wrapper()) return Py_NewRef(static_cast<PyObject*>(n->wrapper()));
  nb::object made;
  if (!g) {
    made = wrap_graph(n->graph().shared_from_this());
    g = reinterpret_cast<PyGraph*>(made.ptr());
  }
  PyObject* o = check(reinterpret_cast<PyObject*>(PyObject_GC_New(PyNode, state().node)));
  as_node(o)->node = n;
  as_node(o)->graph = g;
  as_node(o)->dict = as_node(o)->weak = nullptr;
  Py_INCREF(g);
  PyObject_GC_Track(o);
  n->set_wrapper(Py_NewRef(o));  // the slot's own reference
  return o;
}

PyObject* node_list(PyGraph* g, const std::vector<Node*>& nodes) {
  nb::object list = own(PyList_New(static_cast<Py_ssize_t>(nodes.size())));
  for (size_t i = 0; i < nodes.size(); ++i) {
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), wrap_node(g, nodes[i]));
  }
  return list.release().ptr();
}

PyObject* node_meta(Node* n) {
  fx::NodeMeta& meta = n->meta();
  auto* mine = exactly<PyMeta>(meta.extension.get());
  if (mine && mine->dict) return mine->dict;
  fx::Ref<PyMeta> made = PyMeta::own(mine);
  for (const auto& [key, value] : meta.entries()) {
    nb::object v = to_python(value, nullptr);
    if (PyDict_SetItemString(made->dict, key.c_str(), v.ptr()) < 0) throw PythonErrorSet{};
  }
  meta.extension = made;
  return made->dict;
}

void add_node_types(PyObject* module) { state().node = add_type(module, &node_spec); }

}  // namespace fxjit::inline v0::python
