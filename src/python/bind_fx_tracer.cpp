// The C++ half of fxjit.fx.TracerBase: from an operation to a node and its Proxy. Python is asked only where the
// tracer's class overrides a step.
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <new>

#include "python/fx_args.h"
#include "python/fx_tracer.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;

PyObject* as_object(PyTracer* t) { return reinterpret_cast<PyObject*>(t); }

bool overrides(PyTracer* t, const char* method, PyTypeObject* base) {
  nb::object name = own(PyUnicode_InternFromString(method));
  if (t->dict && PyDict_Contains(t->dict, name.ptr()) == 1) return true;
  return _PyType_Lookup(Py_TYPE(t), name.ptr()) != _PyType_Lookup(base, name.ptr());
}

bool flag(PyTracer* t, const char* name) {
  nb::object value = nb::steal(PyObject_GetAttrString(as_object(t), name));
  if (!value.is_valid()) {
    PyErr_Clear();
    return false;
  }
  return PyObject_IsTrue(value.ptr()) == 1;
}

unsigned int compute_hooks(PyTracer* t) {
  static constexpr struct {
    const char* method;
    PyTypeObject* State::* base;
    Hook hook;
  } kMethods[] = {
      {"create_arg", &State::tracer_base, kCreateArg},         {"create_node", &State::tracer_base, kCreateNode},
      {"create_proxy", &State::tracer_base, kCreateProxy},     {"proxy", &State::tracer_base, kMakeProxy},
      {"call_module", &State::tracer_class, kCallModule},      {"path_of_module", &State::tracer_class, kPathOfModule},
      {"is_leaf_module", &State::tracer_class, kIsLeafModule},
  };
  unsigned int hooks = 0;
  for (const auto& [method, base, hook] : kMethods) {
    if (overrides(t, method, state().*base)) hooks |= hook;
  }
  if (flag(t, "check_mutable_operations")) hooks |= kCheckMutable;
  if (flag(t, "record_stack_traces")) {
    hooks |= kStackTraces;
    if (flag(t, "_record_forward_stack_traces_only")) hooks |= kForwardTraces;
    if (call_helper("filters_frames", {as_object(t)}).ptr() == Py_True) hooks |= kFiltersFrames;
  }
  return hooks;
}

// What the nodes made from here on have in their meta: the entries of the module stack, shared until one is read.
void refresh_scope(PyTracer* t) {
  t->scope = nullptr;
  nb::object triple = call_helper("current_scope", {as_object(t), t->module_stack});
  t->scope_stale = false;
  PyObject* stack = PyTuple_GET_ITEM(triple.ptr(), 0);
  PyObject* path = PyTuple_GET_ITEM(triple.ptr(), 1);
  if (stack == Py_None && PyUnicode_GET_LENGTH(path) == 0) return;
  t->scope = fx::make_ref<PyMeta>(stack == Py_None ? nullptr : stack, path, PyTuple_GET_ITEM(triple.ptr(), 2));
}

bool preserves_meta() {
  static PyObject* const key = check(PyUnicode_InternFromString("should_preserve_node_meta"));
  return PyDict_GetItemWithError(state().traceback_dict, key) == Py_True;
}

// The frames of the Python stack. Turning them into text is what takes long: PyMeta does it when it is asked.
PyObject* gather_frames() {
  static PyObject* const gather =
      check(PyObject_GetAttrString(nb::module_::import_("torch._C._profiler").ptr(), "gather_traceback"));
  PyObject* python_script_cpp[] = {Py_True, Py_False, Py_False};
  return check(PyObject_Vectorcall(gather, python_script_cpp, 3, nullptr));
}

// Everything that create_node does besides creating the node.
void annotate(PyTracer* t, PyGraph* g, fx::Node* n, unsigned int hooks) {
  const bool preserves = preserves_meta();
  if (preserves) {
    nb::object node = own(wrap_node(g, n));
    call_helper("apply_current_meta", {node.ptr()});
  } else if (t->module_stack) {
    if (t->scope_stale) refresh_scope(t);
    if (t->scope) n->meta().extension = t->scope;
  }
  if (!(hooks & kStackTraces)) return;
  if (!preserves && !(hooks & kFiltersFrames)) {
    const PyMeta* scope = t->scope.get();
    const bool scoped = t->module_stack && scope;
    auto meta = fx::make_ref<PyMeta>(scoped ? scope->module_stack : nullptr, scoped ? scope->path : nullptr,
                                     scoped ? scope->type : nullptr);
    meta->trace = gather_frames();
    meta->forward_only = hooks & kForwardTraces;
    n->meta().extension = std::move(meta);
  } else {
    nb::object node = own(wrap_node(g, n));
    call_helper("record_stack_trace", {as_object(t), node.ptr()});
  }
}

PyGraph* graph_of_tracer(PyTracer* t) {
  if (!t->graph || !is_graph(t->graph)) raise(PyExc_AttributeError, "this tracer has no graph");
  return reinterpret_cast<PyGraph*>(t->graph);
}

Argument target_argument(const Call& call, PyGraph* g) {
  if (call.handle) return *call.handle;
  if (call.op == fx::Opcode::CallFunction && PyCallable_Check(call.target)) return callable_from_python(call.target);
  return from_python(call.target, g);
}

// create_node with arguments that are lowered already: `args` and `kwargs` instead of the call's.
fx::Node* base_create_node(PyTracer* t, PyGraph* g, const Call& call, Argument args, Argument kwargs, PyObject* type,
                           unsigned int hooks) {
  if (call.op == fx::Opcode::CallFunction && hooks & kCheckMutable) {
    nb::object a = to_python(args, g), k = kwargs_to_python(kwargs, g);
    call_helper("check_mutable", {call.target, a.ptr(), k.ptr()});
  }
  std::optional<std::string_view> candidate;
  if (is_given(call.name)) candidate = string_of(call.name, "name");
  fx::Node* n = make_node(g, call.op, target_argument(call, g), std::move(args), std::move(kwargs), candidate,
                          is_given(type) ? annotation_from_python(type, g) : Argument());
  annotate(t, g, n, hooks);
  return n;
}

nb::object tuple_of(PyObject* const* items, size_t n) {
  nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(n)));
  for (size_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(items[i]));
  return tuple;
}

Argument lower_items(PyTracer* t, PyObject* const* items, size_t n) {
  Argument few[4];
  if (n <= std::size(few)) {
    for (size_t i = 0; i < n; ++i) few[i] = lower(t, items[i]);
    return Argument::tuple(std::span<const Argument>(few, n));
  }
  std::vector<Argument> many(n);
  for (size_t i = 0; i < n; ++i) many[i] = lower(t, items[i]);
  return Argument::tuple(many);
}

PyObject* wrap_in_proxy(PyTracer* t, nb::object node, PyObject* factory, unsigned int hooks) {
  if (is_given(factory)) return check(PyObject_CallOneArg(factory, node.ptr()));
  if (hooks & kMakeProxy || !is_node(node.ptr())) {
    return call_method(as_object(t), "proxy", node.ptr()).release().ptr();
  }
  return new_proxy(reinterpret_cast<PyNode*>(node.ptr())->graph, node_of(node.ptr()), as_object(t));
}

// Lowered by the tracer's own create_arg.
nb::object lower_by_hook(PyTracer* t, PyObject* value, unsigned int hooks, PyTypeObject* wanted, const char* what) {
  nb::object out = hooks & kCreateArg ? call_method(as_object(t), "create_arg", value) : lower_to_python(t, value);
  if (!PyObject_TypeCheck(out.ptr(), wanted)) {
    raise(PyExc_AssertionError,
          std::string("Expected ") + what + " to be " + wanted->tp_name + ", got " + Py_TYPE(out.ptr())->tp_name);
  }
  return out;
}

// create_proxy where create_arg or create_node are the class's own.
PyObject* create_proxy_by_hooks(PyTracer* t, const Call& call, PyObject* type, PyObject* factory, unsigned int hooks) {
  nb::object args = lower_by_hook(t, tuple_of(call.args, call.num_args).ptr(), hooks, &PyTuple_Type, "args_");
  nb::object kwargs = call.kwargs ? lower_by_hook(t, call.kwargs, hooks, &PyDict_Type, "kwargs_") : own(PyDict_New());
  nb::object node;
  if (hooks & kCreateNode) {
    PyObject* argv[] = {as_object(t), opcode_name(call.op), call.target,  args.ptr(),
                        kwargs.ptr(), or_none(call.name),   or_none(type)};
    static PyObject* const method = check(PyUnicode_InternFromString("create_node"));
    node = own(PyObject_VectorcallMethod(method, argv, 7, nullptr));
  } else {
    PyGraph* g = graph_of_tracer(t);
    fx::Node* n = base_create_node(t, g, call, from_python(args.ptr(), g), from_python(kwargs.ptr(), g), type, hooks);
    node = own(wrap_node(g, n));
  }
  return wrap_in_proxy(t, std::move(node), factory, hooks);
}

PyObject* base_create_proxy(PyTracer* t, const Call& call, PyObject* type, PyObject* factory) {
  unsigned int hooks = hooks_of(t);
  if (hooks & (kCreateArg | kCreateNode)) return create_proxy_by_hooks(t, call, type, factory, hooks);
  Argument args = lower_items(t, call.args, call.num_args);
  Argument kwargs = call.kwargs && PyDict_GET_SIZE(call.kwargs) ? lower(t, call.kwargs) : Argument();
  PyGraph* g = graph_of_tracer(t);  // now: a hook may have exchanged it
  fx::Node* n = base_create_node(t, g, call, std::move(args), std::move(kwargs), type, hooks);
  if (is_given(factory) || hooks & kMakeProxy) return wrap_in_proxy(t, own(wrap_node(g, n)), factory, hooks);
  return new_proxy(g, n, as_object(t));
}

PyObject* tracer_create_proxy(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[7];
    parse_args("create_proxy", {"kind", "target", "args", "kwargs", "name", "type_expr", "proxy_factory_fn"}, 4, args,
               n, kw, a);
    nb::object tuple = PyTuple_Check(a[2]) ? nb::borrow(a[2]) : own(PySequence_Tuple(a[2]));
    if (!PyDict_Check(a[3])) raise(PyExc_AssertionError, "Expected kwargs_ to be dict");
    Call call{opcode_of(a[0]),
              a[1],
              &PyTuple_GET_ITEM(tuple.ptr(), 0),
              static_cast<size_t>(PyTuple_GET_SIZE(tuple.ptr())),
              a[3],
              a[4]};
    return base_create_proxy(as_tracer(o), call, a[5], a[6]);
  });
}

PyObject* tracer_create_node(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[6];
    parse_args("create_node", {"kind", "target", "args", "kwargs", "name", "type_expr"}, 4, args, n, kw, a);
    PyGraph* g = graph_of_tracer(as_tracer(o));
    const Call call{opcode_of(a[0]), a[1], nullptr, 0, nullptr, a[4]};
    fx::Node* made = base_create_node(as_tracer(o), g, call, from_python(a[2], g), from_python(a[3], g), a[5],
                                      hooks_of(as_tracer(o)));
    return wrap_node(g, made);
  });
}

PyObject* tracer_create_arg(PyObject* o, PyObject* value) {
  return guarded([&] { return lower_to_python(as_tracer(o), value).release().ptr(); });
}

PyObject* tracer_proxy(PyObject* o, PyObject* node) {
  return guarded([&] {
    fx::Node* n = node_of(node);
    return new_proxy(reinterpret_cast<PyNode*>(node)->graph, n, o);
  });
}

PyObject* get_graph(PyObject* o, void*) {
  if (PyObject* g = as_tracer(o)->graph) return Py_NewRef(g);
  PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'graph'", Py_TYPE(o)->tp_name);
  return nullptr;
}
int set_graph(PyObject* o, PyObject* value, void*) {
  Py_XSETREF(as_tracer(o)->graph, Py_XNewRef(value));
  return 0;
}
// Whoever reads the stack may change it.
PyObject* get_stack(PyObject* o, void*) {
  as_tracer(o)->scope_stale = true;
  ++as_tracer(o)->stack_reads;
  if (PyObject* s = as_tracer(o)->module_stack) return Py_NewRef(s);
  PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'module_stack'", Py_TYPE(o)->tp_name);
  return nullptr;
}
int set_stack(PyObject* o, PyObject* value, void*) {
  as_tracer(o)->scope_stale = true;
  ++as_tracer(o)->stack_reads;
  Py_XSETREF(as_tracer(o)->module_stack, Py_XNewRef(value));
  return 0;
}

// An attribute may be a hook or an option.
int tracer_setattro(PyObject* o, PyObject* name, PyObject* value) {
  as_tracer(o)->hooks_type = nullptr;
  return PyObject_GenericSetAttr(o, name, value);
}

PyObject* tracer_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    PyObject* o = check(type->tp_alloc(type, 0));
    new (&as_tracer(o)->scope) fx::Ref<PyMeta>();
    as_tracer(o)->scope_stale = true;
    return o;
  });
}
int tracer_init(PyObject*, PyObject*, PyObject*) { return 0; }

int tracer_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(as_tracer(o)->graph);
  Py_VISIT(as_tracer(o)->module_stack);
  Py_VISIT(as_tracer(o)->dict);
  return 0;
}

int tracer_clear(PyObject* o) {
  Py_CLEAR(as_tracer(o)->graph);
  Py_CLEAR(as_tracer(o)->module_stack);
  Py_CLEAR(as_tracer(o)->dict);
  return 0;
}

void tracer_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyTypeObject* type = Py_TYPE(o);
  if (as_tracer(o)->weak) PyObject_ClearWeakRefs(o);
  tracer_clear(o);
  as_tracer(o)->scope.~Ref();
  type->tp_free(o);
  Py_DECREF(type);
}

PyMethodDef tracer_methods[] = {
    {"create_proxy", as_method(tracer_create_proxy), METH_FASTCALL | METH_KEYWORDS,
     "create_proxy($self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None)\n--\n\n"
     "Lowers the arguments, makes the node and wraps it."},
    {"create_node", as_method(tracer_create_node), METH_FASTCALL | METH_KEYWORDS,
     "create_node($self, kind, target, args, kwargs, name=None, type_expr=None)\n--\n\n"
     "The one place where nodes are made; args and kwargs are lowered already."},
    {"create_arg", as_method(one_argument<"create_arg", "a", tracer_create_arg>), METH_FASTCALL | METH_KEYWORDS,
     "create_arg($self, a)\n--\n\nLowers a value to what a node may hold."},
    {"proxy", as_method(one_argument<"proxy", "node", tracer_proxy>), METH_FASTCALL | METH_KEYWORDS,
     "proxy($self, node)\n--\n\nThe Proxy of a node."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef tracer_getset[] = {
    {"graph", get_graph, set_graph, nullptr, nullptr},
    {"module_stack", get_stack, set_stack, "the modules whose forward runs, outermost first", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef tracer_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTracer, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTracer, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot tracer_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(tracer_new)},
    {Py_tp_init, reinterpret_cast<void*>(tracer_init)},
    {Py_tp_dealloc, reinterpret_cast<void*>(tracer_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(tracer_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tracer_clear)},
    {Py_tp_setattro, reinterpret_cast<void*>(tracer_setattro)},
    {Py_tp_methods, tracer_methods},
    {Py_tp_getset, tracer_getset},
    {Py_tp_members, tracer_members},
    {0, nullptr},
};
PyType_Spec tracer_spec = {"fxjit._C.TracerBase", sizeof(PyTracer), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, tracer_slots};

}  // namespace

unsigned int hooks_of(PyTracer* t) {
  PyTypeObject* type = Py_TYPE(t);
  bool valid = PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG);
  if (t->hooks_type == type && valid && t->hooks_version == type->tp_version_tag) return t->hooks;
  t->hooks = compute_hooks(t);  // its look-ups give the type a version again
  t->hooks_type = type;
  t->hooks_version = type->tp_version_tag;
  return t->hooks;
}

PyObject* record(PyObject* tracer, const Call& call) {
  if (is_tracer(tracer) && !(hooks_of(as_tracer(tracer)) & kCreateProxy)) {
    return base_create_proxy(as_tracer(tracer), call, nullptr, nullptr);
  }
  nb::object args = tuple_of(call.args, call.num_args);
  nb::object kwargs = call.kwargs ? nb::borrow(call.kwargs) : own(PyDict_New());
  nb::object method = own(PyObject_GetAttrString(tracer, "create_proxy"));
  nb::object positional = own(PyTuple_Pack(4, opcode_name(call.op), call.target, args.ptr(), kwargs.ptr()));
  nb::object keywords;
  if (call.name) {
    keywords = own(PyDict_New());
    if (PyDict_SetItemString(keywords.ptr(), "name", call.name) < 0) throw PythonErrorSet{};
  }
  return check(PyObject_Call(method.ptr(), positional.ptr(), keywords.ptr()));
}

void add_tracer_types(PyObject* module) { state().tracer_base = add_type(module, &tracer_spec); }

}  // namespace fxjit::inline v0::python
