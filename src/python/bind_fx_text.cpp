// The text format of graphs for Python: fxjit.fx.serialization decides which names exist.
#include "fxjit/errors.h"
#include "fxjit/fx/text.h"
#include "python/fx_args.h"

namespace fxjit::inline v0::python {

namespace {

// Calls a method of the Python codec. Its ValueErrors become ours, so that the parser adds the place.
template <class... A>
nb::object ask(PyObject* codec, const char* method, A... arguments) {
  nb::object name = own(PyUnicode_InternFromString(method));
  PyObject* argv[] = {codec, arguments...};
  PyObject* answer = PyObject_VectorcallMethod(name.ptr(), argv, std::size(argv), nullptr);
  if (answer || !PyErr_ExceptionMatches(PyExc_ValueError)) return own(answer);
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  nb::object t = nb::steal(type), v = nb::steal(value), tb = nb::steal(trace);
  throw ValueError(nb::cast<std::string>(nb::str(v)));
}

class PyTextCodec final : public fx::TextCodec {
 public:
  explicit PyTextCodec(PyObject* codec) : codec_(codec) {}

  std::optional<fx::ObjectText> encode(const fx::Object& object) override {
    PyObject* held = held_object(object);
    if (!held) return TextCodec::encode(object);
    nb::object answer = ask(codec_, "encode", held);
    if (answer.is_none()) return std::nullopt;
    fx::ObjectText text{
        nb::cast<std::string>(nb::str(answer[0])), from_python(nb::object(answer[1]).ptr(), nullptr), {}};
    if (nb::object kwargs = answer[2]; PyDict_Size(kwargs.ptr()) > 0) text.kwargs = from_python(kwargs.ptr(), nullptr);
    return text;
  }

  fx::Argument decode(const fx::ObjectText& text) override {
    nb::object kind = own(python::text(text.kind)), args = to_python(text.args, nullptr);
    nb::object kwargs = kwargs_to_python(text.kwargs, nullptr);
    nb::object made = ask(codec_, "decode", kind.ptr(), args.ptr(), kwargs.ptr());
    // What a namedtuple is made by is a callable to the core.
    const bool tuple_type = PyType_Check(made.ptr()) && PyObject_HasAttrString(made.ptr(), "_fields");
    if (tuple_type) return fx::ObjectRef(callable_from_python(made.ptr()));
    return from_python(made.ptr(), nullptr);
  }

  std::string name_of(const fx::Callable& f) override {
    PyObject* held = held_object(f);
    return held ? nb::cast<std::string>(nb::str(ask(codec_, "name_of", held))) : TextCodec::name_of(f);
  }

  fx::CallableRef find(std::string_view name) override {
    nb::object text = own(python::text(name));
    return callable_from_python(ask(codec_, "find_function", text.ptr()).ptr());
  }

  fx::Argument meta_of(const fx::Node& n) override {
    const fx::NodeMeta* meta = n.meta_if_any();
    const auto* mine = meta ? dynamic_cast<const PyMeta*>(meta->extension.get()) : nullptr;
    if (!mine || !mine->dict) return TextCodec::meta_of(n);
    nb::object kept = ask(codec_, "meta_of", mine->dict);
    return PyDict_Size(kept.ptr()) > 0 ? from_python(kept.ptr(), nullptr) : fx::Argument();
  }

  void set_meta(fx::Node& n, const fx::Argument& meta) override {
    nb::object entries = to_python(meta, nullptr);
    if (PyDict_Update(node_meta(&n), entries.ptr()) < 0) throw PythonErrorSet{};
  }

 private:
  PyObject* codec_;  // borrowed for the call
};

// print_text(values, graphs, codec): two dicts with str keys.
PyObject* print(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[3];
    parse_args("print_text", {"values", "graphs", "codec"}, 3, args, n, kw, a);
    if (!PyDict_Check(a[0]) || !PyDict_Check(a[1])) raise(PyExc_TypeError, "values and graphs must be dicts");
    fx::TextDocument document;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(a[0], &at, &key, &value);) {
      document.values.emplace_back(string_of(key, "a name"), from_python(value, nullptr));
    }
    for (Py_ssize_t at = 0; PyDict_Next(a[1], &at, &key, &value);) {
      if (!is_graph(value)) raise(PyExc_TypeError, "graphs must hold Graphs");
      auto* g = reinterpret_cast<PyGraph*>(value);
      graph_of(g);
      document.graphs.emplace_back(string_of(key, "a name"), g->graph);
    }
    PyTextCodec codec(a[2]);
    const std::string out = fx::print_text(document, &codec);
    return text(out);
  });
}

// parse_text(text, codec) -> (values, graphs)
PyObject* parse(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[2];
    parse_args("parse_text", {"text", "codec"}, 2, args, n, kw, a);
    PyTextCodec codec(a[1]);
    const fx::TextDocument document = fx::parse_text(string_of(a[0], "text"), &codec);
    nb::object values = own(PyDict_New()), graphs = own(PyDict_New());
    for (const auto& [name, value] : document.values) {
      nb::object key = own(text(name)), made = to_python(value, nullptr);
      if (PyDict_SetItem(values.ptr(), key.ptr(), made.ptr()) < 0) throw PythonErrorSet{};
    }
    for (const auto& [name, graph] : document.graphs) {
      for (fx::Node* node : graph->nodes()) own_handles(node);
      nb::object key = own(text(name)), made = wrap_graph(graph);
      if (PyDict_SetItem(graphs.ptr(), key.ptr(), made.ptr()) < 0) throw PythonErrorSet{};
    }
    return PyTuple_Pack(2, values.ptr(), graphs.ptr());
  });
}

PyMethodDef functions[] = {
    {"print_text", as_method(print), METH_FASTCALL | METH_KEYWORDS, "print_text(values, graphs, codec) -> str"},
    {"parse_text", as_method(parse), METH_FASTCALL | METH_KEYWORDS, "parse_text(text, codec) -> (values, graphs)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_text_functions(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonErrorSet{};
}

}  // namespace fxjit::inline v0::python
