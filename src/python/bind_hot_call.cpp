// What fxjit/companion.py tells the hot call: variants, fallbacks, and what to watch.
#include <c10/core/DefaultDtype.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/fx_objects.h"
#include "python/generic.h"
#include "python/hot_call.h"
#include "python/torch_python.h"

namespace nb = nanobind;

namespace fxjit::inline v0::python {

NumberKind number_kind(PyObject* o) {
  if (PyFloat_CheckExact(o)) return NumberKind::Float;
  if (PyLong_CheckExact(o)) return NumberKind::Int;
  throw nb::type_error("expected floats and ints");
}

namespace {

HotState& state_of(nb::handle compiled) {
  HotState* s = hot_state(compiled.ptr());
  if (!s) nb::raise_python_error();
  return *s;
}

// From a sequence of (operation, input, value).
SizeGuard size_guard_of(nb::handle steps, size_t inputs) {
  SizeGuard guard;
  for (nb::handle step : steps) {
    guard.push_back({nb::cast<std::string>(step[0]).at(0), nb::cast<size_t>(step[1]), nb::cast<int64_t>(step[2])});
  }
  if (!is_size_guard(guard, inputs)) throw nb::value_error("a size guard leaves one value, of inputs that there are");
  return guard;
}

PyRef names_of(nb::tuple names) { return nb::len(names) ? PyRef::borrow(names.ptr()) : PyRef(); }

// How calls go on that have no compiled code: to the target itself, or to the generic form.
void bind_fallbacks(nb::module_& m) {
  m.def("add_eager", [](nb::handle compiled, nb::handle target, nb::sequence constants, nb::object tensor_marker,
                        nb::tuple names, nb::str reason) {
    EagerCall call{PyRef::borrow(target.ptr()), names_of(names), PyRef::borrow(reason.ptr()), {}};
    for (nb::handle c : constants) call.constants.push_back(PyRef::borrow(c.is(tensor_marker) ? nullptr : c.ptr()));
    state_of(compiled).eager.push_back(std::move(call));
  });
  // Forgets them; a list of (reason, number of calls).
  m.def("take_eager", [](nb::handle compiled) {
    std::vector<EagerCall> calls = std::exchange(state_of(compiled).eager, {});
    nb::list counts;
    for (const EagerCall& c : calls) counts.append(nb::make_tuple(nb::borrow(c.reason.get()), c.calls));
    return counts;
  });
  // For calls of the function's variant that compiled code is not for. placeholders: which arguments they are;
  // decided_by: the tensors of the call where the program decides by more than sizes, else empty.
  m.def("set_generic", [](nb::handle compiled, const std::shared_ptr<driver::Function>& f, nb::handle generic,
                          nb::handle root, const std::vector<size_t>& placeholders, nb::sequence decided_by) {
    if (!nb::isinstance<GenericForward>(generic)) throw nb::type_error("expected a GenericForward");
    std::vector<TensorKind> kinds;
    for (nb::handle t : decided_by) {
      if (!is_plain_tensor(t.ptr())) throw nb::type_error("expected plain torch.Tensor objects");
      kinds.push_back(kind_of(*tensor_of(t.ptr()).unsafeGetTensorImpl()));
    }
    for (auto& v : state_of(compiled).variants) {
      if (v->function != f) continue;
      if (kinds.size() > f->tensor_count() ||
          std::any_of(placeholders.begin(), placeholders.end(), [&](size_t i) { return i >= v->constants.size(); }))
        throw nb::index_error("no such argument");
      v->generic = PyRef::borrow(generic.ptr());
      v->root = PyRef::borrow(root.ptr());
      v->placeholders = placeholders;
      v->kinds = kinds;
    }
  });
  m.def("unchanged", [](nb::handle compiled) { return unchanged(state_of(compiled).watched); });
}

void bind_variants(nb::module_& m) {
  m.def("add_variant", [](nb::handle compiled, std::shared_ptr<driver::Function> f, nb::sequence constants,
                          nb::object tensor_marker, nb::sequence attributes, nb::sequence guards, nb::tuple names) {
    auto v = std::make_shared<Variant>();
    v->function = std::move(f);
    v->names = names_of(names);
    bool any = false;
    for (nb::handle c : constants) {
      // The types stand for numbers; types are no constants.
      const bool is_float = c.is(nb::handle(reinterpret_cast<PyObject*>(&PyFloat_Type)));
      const bool is_int = c.is(nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)));
      v->constants.push_back(PyRef::borrow(c.is(tensor_marker) || is_float || is_int ? nullptr : c.ptr()));
      v->numbers.push_back(is_float ? NumberKind::Float : is_int ? NumberKind::Int : NumberKind::None);
      any = any || is_float || is_int;
    }
    if (!any) v->numbers.clear();
    for (nb::handle a : attributes) {
      nb::object dict = a[0], key = a[1];
      if (!PyDict_Check(dict.ptr())) throw nb::type_error("an attribute is a pair of a dict and a key");
      v->attributes.push_back({PyRef::borrow(dict.ptr()), PyRef::borrow(key.ptr())});
    }
    for (nb::handle g : guards) v->guards.push_back(size_guard_of(g, v->function->tensor_count()));
    HotState& s = state_of(compiled);
    s.variants.insert(s.variants.begin(), std::move(v));
  });
  // The result of a call with these inputs (arguments, then attributes) and numbers, or NotImplemented where no
  // specialisation fits.
  m.def("try_call", [](std::shared_ptr<driver::Function> f, nb::sequence inputs, nb::sequence numbers) -> nb::object {
    std::vector<PyRef> keep;
    for (nb::handle h : inputs) keep.push_back(PyRef::borrow(h.ptr()));
    Variant v;
    v.function = std::move(f);
    v.numbers.resize(keep.size());
    for (nb::handle h : numbers) {
      keep.push_back(PyRef::borrow(h.ptr()));
      v.numbers.push_back(number_kind(h.ptr()));
    }
    if (v.numbers.size() == nb::len(inputs)) v.numbers.clear();
    v.constants.resize(keep.size());
    std::vector<PyObject*> args;
    for (const PyRef& r : keep) args.push_back(r.get());
    PyObject* result = call_variant(v, args.data());
    if (!result && PyErr_Occurred()) nb::raise_python_error();
    return result ? nb::steal(result) : nb::borrow(nb::handle(Py_NotImplemented));
  });
  m.def("companion", [](nb::handle compiled) { return nb::borrow(state_of(compiled).companion.get()); });
  m.def("clear_variants", [](nb::handle compiled) { state_of(compiled).variants.clear(); });
}

template <class Made>
void watch_each(nb::list objects, bool (*is_kind)(PyObject*), const char* what, Made (*watch)(PyObject*),
                std::vector<Made>& out) {
  for (nb::handle h : objects) {
    if (!is_kind(h.ptr())) throw nb::type_error(what);
    out.push_back(watch(h.ptr()));
  }
}

void bind_watch(nb::module_& m) {
  m.def(
      "watch",
      [](nb::handle compiled, nb::list dicts, nb::list cells, nb::list lists, nb::list sets, nb::list types,
         nb::list functions) {
        Watched fresh;
        watch_each(
            dicts, +[](PyObject* o) { return PyDict_Check(o) != 0; }, "expected dicts", &watch_dict, fresh.dicts);
        watch_each(
            cells, +[](PyObject* o) { return PyCell_Check(o) != 0; }, "expected closure cells", &watch_cell,
            fresh.cells);
        watch_each(
            lists, +[](PyObject* o) { return PyList_CheckExact(o) != 0; }, "expected lists", &watch_list, fresh.lists);
        watch_each(
            sets, +[](PyObject* o) { return Py_IS_TYPE(o, &PySet_Type) != 0; }, "expected sets", &watch_set,
            fresh.sets);
        watch_each(
            types, +[](PyObject* o) { return PyType_Check(o) != 0; }, "expected classes", &watch_type, fresh.types);
        watch_each(
            functions, +[](PyObject* o) { return PyFunction_Check(o) != 0; }, "expected functions", &watch_function,
            fresh.functions);
        fresh.default_dtype = c10::get_default_dtype_as_scalartype();
        std::swap(state_of(compiled).watched, fresh);
      },
      nb::arg("compiled"), nb::arg("dicts") = nb::list(), nb::arg("cells") = nb::list(), nb::arg("lists") = nb::list(),
      nb::arg("sets") = nb::list(), nb::arg("types") = nb::list(), nb::arg("functions") = nb::list());
}

}  // namespace

void bind_hot_call(nb::module_& m) {
  bind_variants(m);
  bind_fallbacks(m);
  bind_watch(m);
}

}  // namespace fxjit::inline v0::python
