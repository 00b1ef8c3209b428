#include "python/hot_call.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>
#include <array>
#include <bit>

#include "fxjit/errors.h"
#include "python/fx_objects.h"
#include "python/generic.h"
#include "python/torch_python.h"
#include "python/warnings.h"

namespace fxjit::inline v0::python {
namespace {

// Below this many input elements a call takes some 20 us at most: giving the GIL away would cost more than it brings.
constexpr int64_t kReleaseGilElements = 32 * 1024;
constexpr size_t kInlineTensors = 16;

PyObject* call_slow(HotState& s, PyObject* const* args, size_t n, PyObject* names) {
  PyRef positional = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
  if (!positional) return nullptr;
  for (size_t i = 0; i < n; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(positional.get(), i, args[i]);
  }
  PyRef keywords = PyRef::steal(PyDict_New());
  if (!keywords) return nullptr;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, i), args[n + i]) < 0) return nullptr;
  PyRef slow = s.slow;  // the call may replace it
  return PyObject_CallFunctionObjArgs(slow.get(), positional.get(), keywords.get(), nullptr);
}

// Constants are equal if they are the same object, or of one exact type with equal value. Only immutable simple types
// are ever constants, so comparing them runs no user code.
bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return memcmp(&x, &y, sizeof x) == 0;
  }
  if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a)) return false;
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

// Keyword names in the order of the call; null where there are none.
bool same_names(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

bool matches(const EagerCall& call, PyObject* const* args, size_t n, PyObject* names) {
  if (call.constants.size() != n || !same_names(call.names.get(), names)) return false;
  for (size_t i = 0; i < n; ++i) {
    PyObject* constant = call.constants[i].get();
    if (constant ? !same_constant(constant, args[i]) : !is_plain_tensor(args[i])) return false;
  }
  return true;
}

// Small arrays on the stack, large ones on the heap.
template <class T>
struct Buffer {
  explicit Buffer(size_t n) : data(n <= kInlineTensors ? inline_.data() : (heap_ = std::vector<T>(n)).data()) {}
  std::array<T, kInlineTensors> inline_;  // of pointers: not filled, which would cost as much as the guards
  std::vector<T> heap_;
  T* data;
};

// The bits of a number of this exact type; an int beyond 64 bits is none.
bool read_number(PyObject* o, NumberKind kind, int64_t* bits) {
  if (kind == NumberKind::Float) {
    if (!PyFloat_CheckExact(o)) return false;
    *bits = std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  *bits = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow == 0;
}

// Borrowed tensors of the arguments and attributes of `v`, and its numbers; false where an argument is not what `v` is
// for.
bool gather(const Variant& v, PyObject* const* args, PyObject** objects, c10::TensorImpl** in, int64_t* scalars,
            int64_t& elements) {
  size_t k = 0;
  const bool numbers = !v.numbers.empty();
  if (numbers) scalars += v.function->tensor_count();
  for (size_t i = 0; i < v.constants.size(); ++i) {
    if (numbers && v.numbers[i] != NumberKind::None) {
      if (!read_number(args[i], v.numbers[i], scalars++)) return false;
      continue;
    }
    if (PyObject* constant = v.constants[i].get()) {
      if (!same_constant(constant, args[i])) return false;
      continue;
    }
    if (!is_plain_tensor(args[i])) return false;
    objects[k] = args[i];
    in[k] = tensor_of(args[i]).unsafeGetTensorImpl();
    ++k;
  }
  for (const AttributeSource& a : v.attributes) {
    PyObject* o = PyDict_GetItemWithError(a.dict.get(), a.key.get());
    if (!o || !is_plain_tensor(o)) return false;
    objects[k] = o;
    in[k] = tensor_of(o).unsafeGetTensorImpl();
    ++k;
  }
  for (size_t i = 0; i < k; ++i) {
    if (in[i]->key_set().has(c10::DispatchKey::NestedTensor)) return false;  // these have no sizes to ask for
    elements += in[i]->sym_numel().maybe_as_int().value_or(0);
  }
  return true;
}

driver::Function::Outcome call_without_gil(driver::Function& f, std::span<PyObject* const> objects,
                                           c10::TensorImpl** in, std::span<c10::TensorImpl*> out,
                                           const int64_t* scalars) {
  // Attributes are borrowed from dicts that another thread may change meanwhile.
  std::vector<PyRef> keep;
  for (PyObject* o : objects) keep.push_back(PyRef::borrow(o));
  struct Released {
    PyThreadState* thread = PyEval_SaveThread();
    ~Released() { PyEval_RestoreThread(thread); }
  } released;
  return f.try_call(in, out, scalars);
}

PyObject* wrap_owned(c10::TensorImpl*& t) {
  return THPVariable_Wrap(at::TensorBase(c10::intrusive_ptr<c10::TensorImpl>::reclaim(std::exchange(t, nullptr))));
}

PyObject* make_result(const driver::Function::Outcome& o, PyObject** objects, c10::TensorImpl** out, size_t results) {
  const auto& structure = static_cast<const PyStructure&>(o.structure->as_object());
  const bool one = results == 1 && o.outputs.size() == 1 && o.outputs[0].kind == driver::OutputSource::Result;
  if (one && structure.kind == PyStructure::Single && out[0]) return wrap_owned(out[0]);
  Buffer<PyRef> made(results), leaves(o.outputs.size());
  for (size_t i = 0; i < results; ++i) {
    if (!out[i]) continue;
    made.data[i] = PyRef::steal(wrap_owned(out[i]));
    if (!made.data[i]) return nullptr;
  }
  for (size_t i = 0; i < o.outputs.size(); ++i) {
    const driver::OutputSource& source = o.outputs[i];
    leaves.data[i] =
        source.kind == driver::OutputSource::Input ? PyRef::borrow(objects[source.index]) : made.data[source.index];
  }
  return structure.build(std::span(leaves.data, o.outputs.size()));
}

// Compiled code computes no gradients: where some are wanted the generic form runs.
bool wants_gradients(std::span<c10::TensorImpl* const> in) {
  return c10::GradMode::is_enabled() && std::any_of(in.begin(), in.end(), [](auto* t) { return t->requires_grad(); });
}

// What wants to see the operations of the program itself, and modules at work: the companion knows what to do then.
bool is_observed() {
  return c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Tracer);
}

bool is_for(const Variant& v, c10::TensorImpl* const* in) {
  for (size_t i = 0; i < v.kinds.size(); ++i)
    if (kind_of(*in[i]) != v.kinds[i]) return false;
  return v.generic && !is_observed();
}

// Whether there will be no specialisation for such inputs.
bool stays_generic(driver::Function& f, std::span<PyObject* const> objects) {
  if (f.is_compiling()) return false;
  std::vector<at::Tensor> inputs;
  for (PyObject* o : objects) inputs.push_back(tensor_of(o));
  return !f.wants_recording(inputs);
}

PyObject* call_generic(const Variant& v, PyObject* const* args) {
  std::vector<PyObject*> values;
  for (size_t i : v.placeholders) values.push_back(args[i]);
  v.function->count_generic_call();
  const PyRef keep = v.generic, root = v.root;  // the call may drop the variant's
  return generic_forward(keep.get())->call(root.get(), values.data(), values.size());
}

}  // namespace

TensorKind kind_of(const c10::TensorImpl& t) {
  return {t.key_set().raw_repr(), c10::typeMetaToScalarType(t.dtype()), t.dim()};
}

PyObject* call_variant(const Variant& v, PyObject* const* args) {
  size_t n = v.function->tensor_count();
  Buffer<PyObject*> objects(n);
  Buffer<c10::TensorImpl*> in(n);
  Buffer<int64_t> scalars(v.numbers.empty() ? 0 : n + v.function->number_count());
  int64_t elements = 0;
  if (!gather(v, args, objects.data, in.data, scalars.data, elements)) return nullptr;
  for (const SizeGuard& guard : v.guards)
    if (!holds(guard, std::span<c10::TensorImpl* const>(in.data, n))) return nullptr;
  if (v.generic && wants_gradients({in.data, n})) return is_for(v, in.data) ? call_generic(v, args) : nullptr;
  size_t results = v.function->max_results();
  Buffer<c10::TensorImpl*> out(results);
  std::fill_n(out.data, results, nullptr);  // a specialisation may have fewer than the largest
  WarningCollector warnings;
  PyObject* result = nullptr;
  bool generic = false;
  try {
    driver::Function::Outcome outcome =
        elements > kReleaseGilElements
            ? call_without_gil(*v.function, {objects.data, n}, in.data, std::span(out.data, results), scalars.data)
            : v.function->try_call(in.data, std::span(out.data, results), scalars.data);
    if (outcome.specialisation)
      result = make_result(outcome, objects.data, out.data, results);
    else
      generic = is_for(v, in.data) && stays_generic(*v.function, {objects.data, n});
  } catch (const Error&) {
    set_python_error();
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
  }
  if (!warnings.give()) Py_CLEAR(result);
  return generic && !PyErr_Occurred() ? call_generic(v, args) : result;
}

PyObject* call_compiled(HotState& s, PyObject* const* args, size_t nargsf, PyObject* names) {
  const size_t positional = PyVectorcall_NARGS(nargsf);
  const size_t n = positional + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
  const bool plain = !at::impl::torch_function_mode_enabled() && !driver::Recording::active();
  if (plain && !(s.variants.empty() && s.eager.empty()) && unchanged(s.watched)) {
    for (size_t i = 0; i < s.variants.size(); ++i) {
      std::shared_ptr<Variant> v = s.variants[i];
      if (v->constants.size() != n || !same_names(v->names.get(), names)) continue;
      PyObject* result = call_variant(*v, args);
      if (result) {
        if (i && i < s.variants.size() && s.variants[i] == v) std::swap(s.variants[0], s.variants[i]);
        return result;
      }
      if (PyErr_Occurred()) return nullptr;
    }
    for (EagerCall& call : s.eager) {
      if (!matches(call, args, n, names)) continue;
      ++call.calls;
      const PyRef target = call.target;  // the call may drop it
      return PyObject_Vectorcall(target.get(), args, nargsf, names);
    }
  }
  return call_slow(s, args, positional, names);
}

}  // namespace fxjit::inline v0::python
