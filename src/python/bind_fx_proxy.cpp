// fxjit.fx.Proxy and Attribute: operators are number slots, everything else is recorded through the tracer.
#include <Python.h>
#include <structmember.h>

#include <cstddef>

#include "python/fx_args.h"
#include "python/fx_tracer.h"

namespace fxjit::inline v0::python {

namespace {

PyProxy* as_proxy(PyObject* o) { return reinterpret_cast<PyProxy*>(o); }

// A function of Python's operator module with its handle. Never freed.
struct Operator {
  explicit Operator(const char* name) {
    nb::object module = own(PyImport_ImportModule("operator"));
    function = own(PyObject_GetAttrString(module.ptr(), name)).release().ptr();
    handle = callable_from_python(function);
  }
  PyObject* function;
  fx::Ref<PyCallable> handle;
};

PyObject* record_operator(PyObject* tracer, const Operator& f, std::initializer_list<PyObject*> args) {
  return guarded([&] {
    return record(tracer,
                  Call{fx::Opcode::CallFunction, f.function, args.begin(), args.size(), nullptr, nullptr, &f.handle});
  });
}

// clang-format off: it changes its mind about such a list at each run
#define FXJIT_OPERATORS(X) \
  X(add) X(sub) X(mul) X(truediv) X(floordiv) X(mod) X(lshift) X(rshift) X(and_) X(or_) X(xor) X(matmul) X(getitem) \
  X(eq) X(ne) X(lt) X(gt) X(le) X(ge) X(pos) X(neg) X(invert) X(abs) X(pow)
// clang-format on

#define FXJIT_DECLARE(name)                     \
  const Operator& fn_##name() {                 \
    static const auto* f = new Operator(#name); \
    return *f;                                  \
  }
FXJIT_OPERATORS(FXJIT_DECLARE)
#undef FXJIT_DECLARE

template <const Operator& (*function)()>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&] { return record_operator(proxy_tracer(is_proxy(a) ? a : b), function(), {a, b}); });
}

template <const Operator& (*function)()>
PyObject* unary(PyObject* a) {
  return guarded([&] { return record_operator(proxy_tracer(a), function(), {a}); });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<fn_pow>(a, b);
}

// The slot that makes Python take a Proxy for a sequence, as it takes torch.fx's: reversed() then asks for its length,
// and proxy_len says how to record that.
PyObject* proxy_item(PyObject* o, Py_ssize_t i) {
  nb::object index = nb::steal(PyLong_FromSsize_t(i));
  return index.is_valid() ? binary<fn_getitem>(o, index.ptr()) : nullptr;
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static constexpr const Operator& (*functions[])() = {fn_lt, fn_le, fn_eq, fn_ne, fn_gt, fn_ge};
  static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);
  return guarded([&] { return record_operator(proxy_tracer(a), functions[op](), {a, b}); });
}

int proxy_traverse(PyObject* o, visitproc visit, void* arg) {
  PyProxy* p = as_proxy(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(p->graph);
  Py_VISIT(p->tracer);
  Py_VISIT(p->root);
  Py_VISIT(p->attr);
  Py_VISIT(p->dict);
  return 0;
}

int proxy_clear(PyObject* o) {
  PyProxy* p = as_proxy(o);
  p->node = nullptr;
  Py_CLEAR(p->graph);
  Py_CLEAR(p->tracer);
  Py_CLEAR(p->root);
  Py_CLEAR(p->attr);
  Py_CLEAR(p->dict);
  return 0;
}

void proxy_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyTypeObject* type = Py_TYPE(o);
  if (as_proxy(o)->weak) PyObject_ClearWeakRefs(o);
  proxy_clear(o);
  type->tp_free(o);
  Py_DECREF(type);
}

void set_node(PyProxy* p, PyObject* node) {
  p->node = node_of(node);
  Py_XSETREF(p->graph, reinterpret_cast<PyGraph*>(
                           Py_NewRef(reinterpret_cast<PyObject*>(reinterpret_cast<PyNode*>(node)->graph))));
}

// Proxy(node, tracer=None)
int proxy_init(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded_int([&] {
    static const char* names[] = {"node", "tracer", nullptr};
    PyObject *node = nullptr, *tracer = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Proxy", const_cast<char**>(names), &node, &tracer)) return -1;
    set_node(as_proxy(o), node);
    nb::object keep = is_given(tracer)
                          ? nb::borrow(tracer)
                          : call_helper("appending_tracer", {reinterpret_cast<PyObject*>(as_proxy(o)->graph)});
    Py_XSETREF(as_proxy(o)->tracer, keep.release().ptr());
    return 0;
  });
}

// Attribute(root, attr)
int attribute_init(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded_int([&] {
    static const char* names[] = {"root", "attr", nullptr};
    PyObject *root = nullptr, *attr = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OU:Attribute", const_cast<char**>(names), &root, &attr)) return -1;
    nb::object tracer = own(PyObject_GetAttrString(root, "tracer"));
    PyProxy* p = as_proxy(o);
    p->node = nullptr;
    Py_CLEAR(p->graph);
    Py_XSETREF(p->root, Py_NewRef(root));
    Py_XSETREF(p->attr, Py_NewRef(attr));
    Py_XSETREF(p->tracer, tracer.release().ptr());
    return 0;
  });
}

PyObject* make_attribute(PyObject* root, PyObject* name) {
  return guarded([&] {
    PyObject* tracer = proxy_tracer(root);
    PyTypeObject* type = state().attribute;
    PyObject* o = check(type->tp_alloc(type, 0));
    as_proxy(o)->root = Py_NewRef(root);
    as_proxy(o)->attr = Py_NewRef(name);
    as_proxy(o)->tracer = Py_NewRef(tracer);
    return o;
  });
}

// What has no attribute of this name on the Python side is an attribute of the traced value. Subclasses that define
// __getattr__ get Python's own slot, which finds __getattribute__ and __getattr__ below.
PyObject* proxy_getattro(PyObject* o, PyObject* name) {
  if (_PyType_Lookup(Py_TYPE(o), name)) return PyObject_GenericGetAttr(o, name);
  if (PyObject* dict = as_proxy(o)->dict) {
    PyObject* found = PyDict_GetItemWithError(dict, name);
    if (found) return Py_NewRef(found);
    if (PyErr_Occurred()) return nullptr;
  }
  return make_attribute(o, name);
}

PyObject* proxy_getattribute(PyObject* o, PyObject* name) { return PyObject_GenericGetAttr(o, name); }

PyObject* proxy_call(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyProxy* p = as_proxy(o);
    bool method = PyType_IsSubtype(Py_TYPE(o), state().attribute);
    nb::object name = method ? nb::borrow(p->attr) : own(PyUnicode_InternFromString("__call__"));
    std::vector<PyObject*> all{method ? p->root : o};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) all.push_back(PyTuple_GET_ITEM(args, i));
    return record(proxy_tracer(o), Call{fx::Opcode::CallMethod, name.ptr(), all.data(), all.size(), kwargs});
  });
}

int proxy_bool(PyObject* o) {
  return guarded_int([&] {
    nb::object answer = call_helper("proxy_bool", {o});
    return PyObject_IsTrue(answer.ptr());
  });
}

PyObject* proxy_iter(PyObject* o) {
  return guarded([&] { return call_helper("proxy_iter", {o}).release().ptr(); });
}

Py_ssize_t proxy_len(PyObject*) {
  PyErr_SetString(PyExc_RuntimeError,
                  "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please "
                  "call torch.fx.wrap('len') at module scope");
  return -1;
}

PyObject* proxy_repr(PyObject* o) {
  return guarded([&] {
    PyGraph* g = nullptr;
    return PyUnicode_FromFormat("Proxy(%s)", std::string(proxy_node(o, &g)->name()).c_str());
  });
}

PyObject* proxy_keys(PyObject* o, PyObject*) {
  return guarded([&] { return call_method(proxy_tracer(o), "keys", o).release().ptr(); });
}

PyObject* proxy_torch_function(PyObject* cls, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[4];
    parse_args("__torch_function__", {"orig_method", "types", "args", "kwargs"}, 2, args, n, kw, a);
    PyObject* positional = is_given(a[2]) ? a[2] : state().empty_tuple;
    return torch_function(cls, a[0], positional, is_given(a[3]) ? a[3] : nullptr);
  });
}

PyObject* proxy_deepcopy(PyObject* o, PyObject* memo) {
  return guarded([&] { return call_helper("proxy_deepcopy", {o, memo}).release().ptr(); });
}

PyObject* proxy_copy(PyObject* o, PyObject*) {
  return guarded([&] { return call_helper("proxy_copy", {o}).release().ptr(); });
}

PyObject* get_node(PyObject* o, void*) {
  return guarded([&] {
    PyGraph* g = nullptr;
    fx::Node* n = proxy_node_of_struct(o, &g);
    return wrap_node(g, n);
  });
}
int set_node_attr(PyObject* o, PyObject* value, void*) {
  return guarded_int([&] {
    if (!value) raise(PyExc_AttributeError, "a Proxy keeps its node");
    set_node(as_proxy(o), value);
    return 0;
  });
}
PyObject* get_tracer(PyObject* o, void*) { return Py_NewRef(or_none(as_proxy(o)->tracer)); }
int set_tracer(PyObject* o, PyObject* value, void*) {
  Py_XSETREF(as_proxy(o)->tracer, Py_XNewRef(value));
  return 0;
}

PyGetSetDef proxy_getset[] = {
    {"node", get_node, set_node_attr, nullptr, nullptr},
    {"tracer", get_tracer, set_tracer, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__class__", proxy_class, nullptr, "torch.fx's class of the same name, for isinstance in programs", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef proxy_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyProxy, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyProxy, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyMemberDef attribute_members[] = {
    {"root", T_OBJECT, offsetof(PyProxy, root), 0, nullptr},
    {"attr", T_OBJECT, offsetof(PyProxy, attr), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyMethodDef proxy_methods[] = {
    {"__getattr__", make_attribute, METH_O, nullptr},
    {"__getattribute__", proxy_getattribute, METH_O | METH_COEXIST, nullptr},
    {"__torch_function__", as_method(proxy_torch_function), METH_FASTCALL | METH_KEYWORDS | METH_CLASS, nullptr},
    {"__deepcopy__", proxy_deepcopy, METH_O, nullptr},
    {"__copy__", proxy_copy, METH_NOARGS, nullptr},
    {"keys", proxy_keys, METH_NOARGS, "keys($self)\n--\n\nWhat `**proxy` asks for; the tracer's keys() answers."},
    {nullptr, nullptr, 0, nullptr},
};

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyType_Slot proxy_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("Proxy(node, tracer=None)\n--\n\nA value of a graph: what is done to it is recorded.")},
    {Py_tp_init, slot(proxy_init)},
    {Py_tp_new, slot(PyType_GenericNew)},
    {Py_tp_dealloc, slot(proxy_dealloc)},
    {Py_tp_traverse, slot(proxy_traverse)},
    {Py_tp_clear, slot(proxy_clear)},
    {Py_tp_getattro, slot(proxy_getattro)},
    {Py_tp_call, slot(proxy_call)},
    {Py_tp_iter, slot(proxy_iter)},
    {Py_tp_repr, slot(proxy_repr)},
    {Py_tp_hash, reinterpret_cast<void*>(PyBaseObject_Type.tp_hash)},
    {Py_tp_richcompare, slot(compare)},
    {Py_tp_getset, proxy_getset},
    {Py_tp_members, proxy_members},
    {Py_tp_methods, proxy_methods},
    {Py_nb_bool, slot(proxy_bool)},
    {Py_nb_add, slot(binary<fn_add>)},
    {Py_nb_subtract, slot(binary<fn_sub>)},
    {Py_nb_multiply, slot(binary<fn_mul>)},
    {Py_nb_true_divide, slot(binary<fn_truediv>)},
    {Py_nb_floor_divide, slot(binary<fn_floordiv>)},
    {Py_nb_remainder, slot(binary<fn_mod>)},
    {Py_nb_lshift, slot(binary<fn_lshift>)},
    {Py_nb_rshift, slot(binary<fn_rshift>)},
    {Py_nb_and, slot(binary<fn_and_>)},
    {Py_nb_or, slot(binary<fn_or_>)},
    {Py_nb_xor, slot(binary<fn_xor>)},
    {Py_nb_matrix_multiply, slot(binary<fn_matmul>)},
    {Py_nb_power, slot(power)},
    {Py_nb_positive, slot(unary<fn_pos>)},
    {Py_nb_negative, slot(unary<fn_neg>)},
    {Py_nb_invert, slot(unary<fn_invert>)},
    {Py_nb_absolute, slot(unary<fn_abs>)},
    {Py_mp_subscript, slot(binary<fn_getitem>)},
    {Py_mp_length, slot(proxy_len)},
    {Py_sq_item, slot(proxy_item)},
    {Py_sq_length, slot(proxy_len)},
    {0, nullptr},
};
constexpr unsigned int kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE;
PyType_Spec proxy_spec = {"fxjit.fx.proxy.Proxy", sizeof(PyProxy), 0, kFlags, proxy_slots};

PyType_Slot attribute_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "Attribute(root, attr)\n--\n\nAn attribute of a proxy: becomes a node when it is used as a value.")},
    {Py_tp_init, slot(attribute_init)},
    {Py_tp_dealloc, slot(proxy_dealloc)},
    {Py_tp_traverse, slot(proxy_traverse)},
    {Py_tp_clear, slot(proxy_clear)},
    {Py_tp_members, attribute_members},
    {0, nullptr},
};
PyType_Spec attribute_spec = {"fxjit.fx.proxy.Attribute", sizeof(PyProxy), 0, kFlags, attribute_slots};

}  // namespace

fx::Node* proxy_node_of_struct(PyObject* o, PyGraph** graph) {
  PyProxy* p = as_proxy(o);
  if (!p->node && p->root && p->tracer) {
    PyObject* args[] = {p->root, p->attr};
    nb::object made =
        own(record(p->tracer, Call{fx::Opcode::CallFunction, state().getattr_function, args, 2, nullptr}));
    PyGraph* g = nullptr;
    p->node = proxy_node(made.ptr(), &g);
    Py_XSETREF(p->graph, reinterpret_cast<PyGraph*>(Py_NewRef(reinterpret_cast<PyObject*>(g))));
  }
  if (!p->node || !p->graph || !p->graph->graph) raise(PyExc_AttributeError, "this Proxy has no node");
  *graph = p->graph;
  return p->node;
}

fx::Node* proxy_node(PyObject* o, PyGraph** graph) {
  if (Py_TYPE(o) == state().proxy || Py_TYPE(o) == state().attribute) return proxy_node_of_struct(o, graph);
  nb::object node = own(PyObject_GetAttrString(o, "node"));  // a subclass may compute it
  fx::Node* n = node_of(node.ptr());
  *graph = reinterpret_cast<PyNode*>(node.ptr())->graph;  // alive: the node's slot holds the wrapper
  return n;
}

PyObject* proxy_tracer(PyObject* o) {
  PyObject* tracer = as_proxy(o)->tracer;
  if (!tracer) raise(PyExc_AttributeError, "this Proxy has no tracer");
  return tracer;
}

PyObject* new_proxy(PyGraph* g, fx::Node* n, PyObject* tracer) {
  PyTypeObject* type = state().proxy;
  PyObject* o = check(type->tp_alloc(type, 0));
  as_proxy(o)->node = n;
  as_proxy(o)->graph = g;
  Py_INCREF(g);
  as_proxy(o)->tracer = Py_NewRef(tracer);
  return o;
}

void add_proxy_types(PyObject* module) {
  state().proxy = add_type(module, &proxy_spec);
  state().attribute = add_type(module, &attribute_spec, state().proxy);
}

}  // namespace fxjit::inline v0::python
