// What fxjit/compile.py and fxjit/capture.py need of the driver.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <bit>

#include "codegen/forward/forward_plan.h"
#include "driver/background.h"
#include "fxjit/errors.h"
#include "jit/forward_jit.h"
#include "python/fx_objects.h"
#include "python/generic.h"
#include "python/hot_call.h"
#include "python/torch_python.h"
#include "python/warnings.h"
#include "support/fault.h"
#include "torch/dnnl_linear.h"

namespace nb = nanobind;

namespace fxjit::inline v0::python {

void bind_hot_call(nb::module_& m);  // bind_hot_call.cpp

namespace {

std::vector<at::Tensor> tensors_of(nb::sequence list) {
  std::vector<at::Tensor> tensors;
  for (nb::handle h : list) {
    if (!is_plain_tensor(h.ptr())) throw nb::type_error("expected plain torch.Tensor objects");
    tensors.push_back(tensor_of(h.ptr()));
  }
  return tensors;
}

std::vector<driver::Recording::Number> numbers_of(nb::sequence list) {
  std::vector<driver::Recording::Number> numbers;
  for (nb::handle h : list) {
    const bool is_float = number_kind(h.ptr()) == NumberKind::Float;
    numbers.push_back({is_float, is_float ? std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(h.ptr()))
                                          : static_cast<uint64_t>(nb::cast<int64_t>(h))});
  }
  return numbers;
}

// Operands: the index of a number, or a float.
int32_t derive_number(driver::Recording& r, const std::string& op, nb::sequence operands, double value) {
  using codegen::NumberExpr;
  static constexpr std::pair<std::string_view, NumberExpr::Op> kOps[] = {{"add", NumberExpr::Add},
                                                                         {"sub", NumberExpr::Sub},
                                                                         {"mul", NumberExpr::Mul},
                                                                         {"truediv", NumberExpr::Div},
                                                                         {"neg", NumberExpr::Neg}};
  NumberExpr e;
  const auto* row = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& k) { return k.first == op; });
  if (row == std::end(kOps)) throw nb::value_error("no arithmetic on numbers");
  e.op = row->second;
  codegen::NumberOperand* parts[] = {&e.a, &e.b};
  size_t i = 0;
  for (nb::handle o : operands) {
    if (i == 2) break;
    if (PyLong_CheckExact(o.ptr()))
      parts[i++]->number = nb::cast<int32_t>(o);
    else
      parts[i++]->constant = nb::cast<double>(o);
  }
  return r.derive_number(e, value);
}

Options options_of(nb::dict values) {
  Options options = Options::from_environment();
  for (auto [key, value] : values) {
    // bool is an int to Python, so its text is asked for by type.
    std::string text =
        PyBool_Check(value.ptr()) ? (value.ptr() == Py_True ? "1" : "0") : nb::cast<std::string>(nb::str(value));
    options.set(nb::cast<std::string>(key), text);
  }
  return options;
}

// The program's nodes behind scopes; what has none is left out.
std::vector<std::string> scope_names(const driver::SpecialisationReport& s, const std::vector<int64_t>& scopes) {
  std::vector<std::string> names;
  for (int64_t i : scopes) {
    if (i >= 0 && static_cast<size_t>(i) < s.scope_names.size()) names.push_back(s.scope_names[static_cast<size_t>(i)]);
  }
  return names;
}

nb::list call_reports(const std::vector<driver::CallReport>& calls, const driver::SpecialisationReport& s = {}) {
  nb::list out;
  for (const driver::CallReport& c : calls) {
    nb::dict d;
    d["node"] = c.node, d["target"] = c.target, d["reason"] = c.reason, d["nodes"] = scope_names(s, {c.scope});
    out.append(d);
  }
  return out;
}

nb::dict specialisation_report(const driver::SpecialisationReport& s) {
  nb::dict d;
  nb::list kernels;
  for (const driver::KernelReport& k : s.kernels) {
    nb::dict row;
    row["name"] = k.name, row["sources"] = k.sources, row["bytes"] = k.bytes, row["ms"] = k.milliseconds;
    row["cached"] = k.cached, row["from_disk"] = k.from_disk, row["nodes"] = scope_names(s, k.scopes);
    kernels.append(row);
  }
  nb::dict stages;
  for (const driver::StageReport& t : s.stages) stages[nb::str(t.stage.c_str())] = t.milliseconds;
  d["inputs"] = s.inputs, d["guards"] = s.guards, d["kernels"] = kernels, d["stages"] = stages;
  d["library_calls"] = call_reports(s.library_calls, s), d["aten_calls"] = call_reports(s.aten_calls, s);
  d["notes"] = s.notes, d["hits"] = s.hits;
  return d;
}

// For what is shown: nothing is left that is being compiled in the background.
void wait_for(const driver::Function& f) {
  nb::gil_scoped_release no_gil;
  f.wait();
}

nb::dict report_dict(const driver::Function& f) {
  wait_for(f);
  driver::Report r = f.report();
  nb::dict d;
  nb::list specialisations;
  for (const auto& s : r.specialisations) specialisations.append(specialisation_report(s));
  d["capture"] = r.capture, d["notes"] = r.notes, d["specialisations"] = specialisations;
  d["fallbacks"] = call_reports(r.fallbacks), d["generic_calls"] = r.generic_calls;
  d["recorded_calls"] = r.recorded_calls, d["text"] = driver::to_string(r);
  return d;
}

void bind_function(nb::module_& m) {
  using driver::Function;
  nb::class_<Function>(m, "Function")
      .def("__init__", [](Function*, nb::handle) { throw nb::type_error("use make_function"); })
      .def("wants_recording",
           [](Function& f, nb::sequence inputs) {
             WarningCollector warnings;
             const bool wanted = f.wants_recording(tensors_of(inputs));
             if (!warnings.give()) nb::raise_python_error();
             return wanted;
           })
      .def("note_fallback", &Function::note_fallback)
      .def("count_generic_call", &Function::count_generic_call)
      .def("set_capture", &Function::set_capture)
      .def("report", &report_dict)
      .def("is_compiling", &Function::is_compiling)
      .def("code",
           [](const Function& f) {
             wait_for(f);
             return f.code();
           })
      .def("reset", &Function::reset);
  m.def("make_function", [](nb::dict options, std::vector<std::string> names, size_t attributes, size_t numbers) {
    return std::make_shared<Function>(options_of(options), Function::Inputs{std::move(names), attributes, numbers});
  });
  // A job may need the GIL, which is gone after the interpreter's end.
  m.def("stop_background", &driver::stop_background, nb::call_guard<nb::gil_scoped_release>());
  nb::module_::import_("atexit").attr("register")(m.attr("stop_background"));
  m.def(
      "check_options", [](nb::dict options) { Function(options_of(options), {}); },
      "Raises TypeError for an unknown option, ValueError for a value that does not fit.");
  m.def("fault_point",
        [](nb::dict options, std::string_view stage) { support::fault_point(options_of(options), stage); });
  m.def(
      "raises_faults",
      [](nb::dict options) {
        const Options o = options_of(options);
        return o.verify || o.strict;
      },
      "Whether bugs of ours are to be raised, instead of running what failed to compile uncompiled.");
  m.def("option_table", [] {
    nb::list rows;
    for (const OptionInfo& o : option_table()) {
      nb::dict d;
      d["name"] = std::string(o.name), d["default"] = std::string(o.default_text);
      d["choices"] = std::string(o.choices), d["help"] = std::string(o.help), d["variable"] = std::string(o.variable);
      rows.append(d);
    }
    return rows;
  });
}

void bind_recording(nb::module_& m) {
  using driver::Recording;
  nb::class_<Recording>(m, "Recording")
      .def("__init__",
           [](Recording* self, std::shared_ptr<driver::Function> f, nb::sequence inputs, nb::sequence numbers) {
             new (self) Recording(std::move(f), tensors_of(inputs), numbers_of(numbers));
           })
      .def("use_numbers", &Recording::use_numbers)
      .def("derive_number", &derive_number)
      .def("begin_scope", &Recording::begin_scope)
      .def("end_scope", &Recording::end_scope)
      .def("refuse", &Recording::refuse)
      .def(
          "finish",
          [](Recording& r, nb::sequence outputs, int kind, nb::object builder) {
            auto structure = fx::make_ref<PyStructure>(static_cast<PyStructure::Kind>(kind),
                                                       PyRef::borrow(builder.is_none() ? nullptr : builder.ptr()));
            r.finish(tensors_of(outputs), fx::Value(structure));
          },
          nb::arg("outputs"), nb::arg("kind"), nb::arg("builder").none())
      .def_static("active", &Recording::active);
  m.attr("STRUCTURE_SINGLE") = static_cast<int>(PyStructure::Single);
  m.attr("STRUCTURE_TUPLE") = static_cast<int>(PyStructure::Tuple);
  m.attr("STRUCTURE_LIST") = static_cast<int>(PyStructure::List);
  m.attr("STRUCTURE_BUILT") = static_cast<int>(PyStructure::Built);
}

fx::GraphPtr graph_ptr_of(nb::handle graph) {
  if (!is_graph(graph.ptr())) throw nb::type_error("expected a fxjit.fx.Graph");
  graph_of(reinterpret_cast<PyGraph*>(graph.ptr()));
  return reinterpret_cast<PyGraph*>(graph.ptr())->graph;
}

void bind_generic(nb::module_& m) {
  nb::class_<GenericForward>(m, "GenericForward")
      .def("__init__", [](GenericForward* self, nb::handle graph) { new (self) GenericForward(graph_ptr_of(graph)); })
      .def("__call__", [](const GenericForward& f, nb::handle module, nb::sequence values) {
        std::vector<nb::object> keep;
        std::vector<PyObject*> args;
        for (nb::handle v : values) {
          keep.push_back(nb::borrow(v));
          args.push_back(v.ptr());
        }
        PyObject* result = f.call(module.ptr(), args.data(), args.size());
        if (!result) nb::raise_python_error();
        return nb::steal(result);
      });
  m.def("generic_code", [](nb::handle graph) {
    fx::GraphPtr g = graph_ptr_of(graph);
    return jit::generic_ir(*g, codegen::plan_generic(*g));
  });
}

}  // namespace

const GenericForward* generic_forward(PyObject* o) { return nb::inst_ptr<GenericForward>(o); }

void bind_compile(nb::module_& m) {
  // Our errors and Python's own travel through nanobind's functions under their own classes.
  nb::register_exception_translator([](const std::exception_ptr& e, void*) {
    try {
      std::rethrow_exception(e);
    } catch (const Error&) {
      set_python_error();
    } catch (const PythonErrorSet&) {
    }
  });
  if (!add_compiled_type(m.ptr())) nb::raise_python_error();
  m.def("prefer_dnnl", &torch_::prefer_dnnl);
  m.attr("built_with_torch") = TORCH_VERSION;
  bind_function(m);
  bind_recording(m);
  bind_generic(m);
  bind_hot_call(m);
}

}  // namespace fxjit::inline v0::python
