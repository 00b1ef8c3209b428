#include "python/generic.h"

#include <vector>

#include "codegen/forward/forward_plan.h"
#include "jit/cpu_target.h"
#include "jit/forward_jit.h"
#include "python/fx_objects.h"
#include "runtime/frame.h"

namespace fxjit::inline v0::python {
namespace {

// An argument with holes for values of slots. What has no hole is made once.
struct Template {
  enum Kind : uint8_t { Constant, Slot, Tuple, List, Named, Dict, Slice } kind = Constant;
  int32_t slot = -1;
  nb::object constant;  // Constant; Named: the type
  std::vector<nb::object> keys;
  std::vector<Template> items;
};

struct Step {
  fx::Opcode op;
  nb::object target;             // callable, or method name
  std::vector<nb::object> path;  // get_attr, call_module
  std::vector<Template> args;    // positional, then keyword
  nb::object names;              // tuple of keyword names, or null
  size_t positional = 0;
  const fx::Node* node;
};

}  // namespace

struct GenericForward::Impl {
  fx::GraphPtr graph;
  codegen::ForwardPlan plan;
  std::vector<Step> steps;
  jit::CompiledForward<fxjit_generic> code;

  explicit Impl(fx::GraphPtr g) : graph(std::move(g)), plan(codegen::plan_generic(*graph)) {
    for (const codegen::ForwardStep& s : plan.steps) steps.push_back(make_step(*s.node));
  }

  int32_t slot_of(const fx::Node* n) const { return plan.step_of(*n).slot; }

  Template make(const fx::Argument& a) const {
    using Kind = fx::Argument::Kind;
    Template t;
    if (a.is_node()) {
      t.kind = Template::Slot;
      t.slot = slot_of(a.as_node());
      return t;
    }
    // A list is made anew each time, as the callee may keep or change it.
    if (!a.contains_node() && !a.is(Kind::List) && !a.is(Kind::Dict)) {
      t.constant = to_python(a, nullptr);
      return t;
    }
    if (a.is(Kind::Dict)) {
      t.kind = Template::Dict;
      for (const fx::DictEntry& e : a.entries()) {
        t.keys.push_back(to_python(e.key, nullptr));
        t.items.push_back(make(e.value));
      }
      return t;
    }
    t.kind = a.is(Kind::List)         ? Template::List
             : a.is(Kind::Slice)      ? Template::Slice
             : a.is(Kind::NamedTuple) ? Template::Named
                                      : Template::Tuple;
    if (t.kind == Template::Named) t.constant = object_to_python(*a.type_object());
    if (a.is(Kind::Range)) {
      t.kind = Template::Named;
      t.constant = nb::borrow(reinterpret_cast<PyObject*>(&PyRange_Type));
    }
    for (const fx::Argument& item : a.items()) t.items.push_back(make(item));
    return t;
  }

  Step make_step(const fx::Node& n) const {
    Step s{n.op(), {}, {}, {}, {}, 0, &n};
    if (n.op() == fx::Opcode::Placeholder) return s;
    if (n.op() == fx::Opcode::CallFunction) {
      s.target = object_to_python(n.target().as_object());
    } else if (n.op() == fx::Opcode::CallMethod) {
      s.target = nb::steal(PyUnicode_InternFromString(std::string(n.target_str()).c_str()));
    } else if (n.op() != fx::Opcode::Output) {
      std::string_view rest = n.target_str();
      while (!rest.empty()) {
        size_t dot = std::min(rest.find('.'), rest.size());
        s.path.push_back(nb::steal(PyUnicode_InternFromString(std::string(rest.substr(0, dot)).c_str())));
        rest.remove_prefix(std::min(dot + 1, rest.size()));
      }
    }
    for (const fx::Argument& a : n.args().items()) s.args.push_back(make(a));
    s.positional = s.args.size();
    if (auto entries = n.kwargs().entries(); !entries.empty()) {
      nb::list names;
      for (const fx::DictEntry& e : entries) {
        names.append(nb::steal(PyUnicode_InternFromString(std::string(e.key.as_str()).c_str())));
        s.args.push_back(make(e.value));
      }
      s.names = nb::tuple(names);
    }
    return s;
  }
};

namespace {

struct Run {
  const GenericForward::Impl& program;
  PyObject* module;
};

PyObject* value_in(fxjit_frame* frame, int32_t slot) { return static_cast<PyObject*>(frame->slots[slot]); }

nb::object evaluate(const Template& t, fxjit_frame* frame) {
  switch (t.kind) {
    case Template::Constant:
      return t.constant;
    case Template::Slot:
      return nb::borrow(value_in(frame, t.slot));
    case Template::List: {
      nb::object list = own(PyList_New(static_cast<Py_ssize_t>(t.items.size())));
      for (size_t i = 0; i < t.items.size(); ++i)
        PyList_SET_ITEM(list.ptr(), i, evaluate(t.items[i], frame).release().ptr());
      return list;
    }
    case Template::Dict: {
      nb::object dict = own(PyDict_New());
      for (size_t i = 0; i < t.items.size(); ++i)
        if (PyDict_SetItem(dict.ptr(), t.keys[i].ptr(), evaluate(t.items[i], frame).ptr()) < 0) throw PythonErrorSet{};
      return dict;
    }
    case Template::Slice:
      return own(PySlice_New(evaluate(t.items[0], frame).ptr(), evaluate(t.items[1], frame).ptr(),
                             evaluate(t.items[2], frame).ptr()));
    case Template::Tuple:
    case Template::Named: {
      nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(t.items.size())));
      for (size_t i = 0; i < t.items.size(); ++i)
        PyTuple_SET_ITEM(tuple.ptr(), i, evaluate(t.items[i], frame).release().ptr());
      return t.kind == Template::Tuple ? tuple : own(PyObject_CallObject(t.constant.ptr(), tuple.ptr()));
    }
  }
  return {};
}

struct ModuleNames {
  nb::object getattr_name, getattribute_name, tables[3];
  nb::object module_getattr, getattribute;  // torch.nn.Module's and object's
};

// Made once, never freed.
const ModuleNames& module_names() {
  static const auto* names = [] {
    auto intern = [](const char* text) { return nb::steal(PyUnicode_InternFromString(text)); };
    auto* n = new ModuleNames{intern("__getattr__"),
                              intern("__getattribute__"),
                              {intern("_parameters"), intern("_buffers"), intern("_modules")},
                              {},
                              {}};
    // Under its own name there may be what a trace has put there.
    n->module_getattr = nb::module_::import_("fxjit.fx._symbolic_trace").attr("_module_getattr");
    n->getattribute = nb::borrow(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__getattribute__");
    return n;
  }();
  return *names;
}

// A parameter, buffer or submodule that is found where torch.nn.Module.__getattr__ finds it: that is Python code, and
// most of what the lookup costs. Null without an error where it may be anything else.
PyObject* find_in_tables(PyObject* o, PyObject* name) {
  const ModuleNames& names = module_names();
  PyTypeObject* type = Py_TYPE(o);
  if (_PyType_Lookup(type, names.getattr_name.ptr()) != names.module_getattr.ptr()) return nullptr;
  if (_PyType_Lookup(type, names.getattribute_name.ptr()) != names.getattribute.ptr()) return nullptr;
  if (_PyType_Lookup(type, name)) return nullptr;
  PyObject** dict = _PyObject_GetDictPtr(o);
  if (!dict || !*dict || PyDict_Contains(*dict, name) != 0) return nullptr;
  for (const nb::object& key : names.tables) {
    PyObject* table = PyDict_GetItemWithError(*dict, key.ptr());
    if (!table || !PyDict_CheckExact(table)) return nullptr;
    if (PyObject* found = PyDict_GetItemWithError(table, name)) return found;
  }
  return nullptr;
}

nb::object attribute(PyObject* module, const std::vector<nb::object>& path) {
  nb::object o = nb::borrow(module);
  for (const nb::object& name : path) {
    PyObject* found = find_in_tables(o.ptr(), name.ptr());
    o = found ? nb::borrow(found) : own(PyObject_GetAttr(o.ptr(), name.ptr()));
  }
  return o;
}

nb::object run_step(const Step& s, fxjit_frame* frame, PyObject* module) {
  if (s.op == fx::Opcode::GetAttr) return attribute(module, s.path);
  // One cell in front for the receiver that vectorcall may want to put there.
  std::vector<nb::object> values;
  values.reserve(s.args.size());
  for (const Template& t : s.args) values.push_back(evaluate(t, frame));
  if (s.op == fx::Opcode::Output) return values[0];
  std::vector<PyObject*> argv(values.size() + 1, nullptr);
  for (size_t i = 0; i < values.size(); ++i) argv[i + 1] = values[i].ptr();
  size_t n = s.positional | PY_VECTORCALL_ARGUMENTS_OFFSET;
  if (s.op == fx::Opcode::CallMethod)
    return own(PyObject_VectorcallMethod(s.target.ptr(), argv.data() + 1, n, s.names.ptr()));
  nb::object callee = s.op == fx::Opcode::CallModule ? attribute(module, s.path) : s.target;
  return own(PyObject_Vectorcall(callee.ptr(), argv.data() + 1, n, s.names.ptr()));
}

// "\nOriginal traceback: …" where the node has one: the lines of the program that it comes from.
std::string origin_of(const fx::Node& n) {
  if (!n.meta_if_any()) return {};
  PyObject* trace = PyDict_GetItemString(node_meta(const_cast<fx::Node*>(&n)), "stack_trace");
  const char* text = trace && PyUnicode_Check(trace) ? PyUnicode_AsUTF8(trace) : nullptr;
  return text ? std::string("\nOriginal traceback:\n") + text : std::string();
}

// Adds "While executing …" to the error that is set. Errors of this are dropped: the user's comes first.
void note_node(const fx::Node& n) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* done = guarded([&]() -> PyObject* {
    const std::string note = "While executing " + n.format_node() + origin_of(n);
    return value ? PyObject_CallMethod(value, "add_note", "s", note.c_str()) : nullptr;
  });
  if (!done) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
}

fxjit_status table_call(fxjit_frame* frame, int32_t node) {
  const Run& run = *static_cast<const Run*>(frame->program);
  const Step& s = run.program.steps[static_cast<size_t>(node)];
  if (s.op == fx::Opcode::Placeholder) return FXJIT_OK;
  PyObject* result = guarded([&] { return run_step(s, frame, run.module).release().ptr(); });
  if (!result) {
    note_node(*s.node);
    return FXJIT_ERROR;
  }
  frame->slots[run.program.plan.steps[static_cast<size_t>(node)].slot] = result;
  return FXJIT_OK;
}

void table_release(fxjit_frame* frame, int32_t slot) {
  auto* o = value_in(frame, slot);
  frame->slots[slot] = nullptr;
  Py_XDECREF(o);
}

const fxjit_table& generic_table() {
  static const fxjit_table table = {&table_call, &table_release, nullptr, nullptr};
  return table;
}

}  // namespace

GenericForward::GenericForward(fx::GraphPtr graph) : impl_(std::make_unique<Impl>(std::move(graph))) {
  auto target = jit::host_target();
  // The host function needs no vectors: any x86-64 runs the code of the smallest target's base.
  impl_->code = jit::compile_generic(*impl_->graph, impl_->plan, {&generic_table(), nullptr},
                                     target ? **target : jit::avx2_target());
}

GenericForward::~GenericForward() = default;

PyObject* GenericForward::call(PyObject* module, PyObject* const* args, size_t n) const {
  const codegen::ForwardPlan& plan = impl_->plan;
  if (n != static_cast<size_t>(plan.inputs)) {
    PyErr_Format(PyExc_TypeError, "forward() takes %d values, one per placeholder, but %zu were given", plan.inputs, n);
    return nullptr;
  }
  fxjit_frame* frame = fxjit_frame_acquire(plan.slots, 0);
  if (!frame) return PyErr_NoMemory();
  Run run{*impl_, module};
  frame->table = &generic_table();
  frame->program = &run;
  fxjit_value out = nullptr;
  for (int32_t i = 0; i < plan.inputs; ++i) frame->slots[i] = args[i];
  fxjit_status status = impl_->code.function(frame, reinterpret_cast<const fxjit_value*>(args), &out);
  for (int32_t i = 0; i < plan.inputs; ++i) frame->slots[i] = nullptr;
  for (int32_t i = plan.inputs; i < plan.slots; ++i) table_release(frame, i);
  fxjit_frame_release(frame);
  if (status == FXJIT_OK) {
    if (!out) Py_RETURN_NONE;  // a graph without an output
    return static_cast<PyObject*>(out);
  }
  if (!PyErr_Occurred()) PyErr_SetString(state().internal_error, "the generic form failed without an error");
  return nullptr;
}

}  // namespace fxjit::inline v0::python
