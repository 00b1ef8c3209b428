// Matching and replacing of subgraphs: fxjit.fx.passes.utils.matcher_utils and fxjit.fx.subgraph_rewriter are the
// faces.
#include "fxjit/fx/subgraph_rewriter.h"
#include "python/fx_args.h"
#include "python/fx_rewrite.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;
using fx::InternalMatch;
using fx::Node;

fx::MatcherOptions matcher_options(PyObject* flags, PyObject* normalize, PyObject* match_attributes) {
  fx::MatcherOptions options;
  bool* fields[] = {&options.match_output, &options.match_placeholder, &options.remove_overlapping_matches,
                    &options.ignore_literals};
  for (Py_ssize_t i = 0; i < 4; ++i) *fields[i] = is_true(PyTuple_GET_ITEM(flags, i));
  options.normalize = [=](const Node& n) {
    nb::object node = own(wrap_node(nullptr, const_cast<Node*>(&n)));
    nb::object made = own(PyObject_CallOneArg(normalize, node.ptr()));
    return from_python(made.ptr(), reinterpret_cast<PyNode*>(node.ptr())->graph);
  };
  options.match_attributes = [=](const Node& pn, const Node& gn) {
    nb::object p = own(wrap_node(nullptr, const_cast<Node*>(&pn))), g = own(wrap_node(nullptr, const_cast<Node*>(&gn)));
    PyObject* argv[] = {p.ptr(), g.ptr()};
    return is_true(own(PyObject_Vectorcall(match_attributes, argv, 2, nullptr)).ptr());
  };
  return options;
}

// (nodes_map, placeholder_nodes, returning_nodes)
nb::object match_to_python(const InternalMatch& match, PyGraph* pattern, PyGraph* graph) {
  nb::object map = own(PyDict_New()), placeholders = own(PyList_New(0));
  for (const auto& [pn, value] : match.nodes_map) {
    nb::object key = own(wrap_node(pattern, pn)), v = to_python(value, graph);
    if (PyDict_SetItem(map.ptr(), key.ptr(), v.ptr()) < 0) throw PythonErrorSet{};
  }
  for (const Argument& value : match.placeholder_nodes) {
    if (PyList_Append(placeholders.ptr(), to_python(value, graph).ptr()) < 0) throw PythonErrorSet{};
  }
  nb::object returning = own(node_list(graph, match.returning_nodes));
  return own(PyTuple_Pack(3, map.ptr(), placeholders.ptr(), returning.ptr()));
}

// match_subgraphs(pattern, graph, flags, node_name_match, normalize, match_attributes): flags are the four of
// SubgraphMatcher's constructor. With None for the graph it only checks the pattern.
PyObject* match_subgraphs(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[6];
    parse_args("match_subgraphs", {"pattern", "graph", "flags", "node_name_match", "normalize", "match_attributes"}, 6,
               args, n, kw, a);
    PyGraph* pattern = graph_argument(a[0], "pattern");
    if (!PyTuple_Check(a[2]) || PyTuple_GET_SIZE(a[2]) != 4) raise(PyExc_TypeError, "flags must be four bools");
    fx::SubgraphMatcher matcher(graph_of(pattern), matcher_options(a[2], a[4], a[5]));
    nb::object found = own(PyList_New(0));
    if (!is_given(a[1])) return found.release().ptr();
    PyGraph* graph = graph_argument(a[1], "graph");
    for (const InternalMatch& match : matcher.match(graph_of(graph), string_of(a[3], "node_name_match"))) {
      if (PyList_Append(found.ptr(), match_to_python(match, pattern, graph).ptr()) < 0) throw PythonErrorSet{};
    }
    return found.release().ptr();
  });
}

nb::object attribute(PyObject* o, const char* name) { return own(PyObject_GetAttrString(o, name)); }

nb::object list_attribute(PyObject* o, const char* name) {
  nb::object list = attribute(o, name);
  if (!PyList_Check(list.ptr())) raise(PyExc_TypeError, std::string(name) + " of a match must be a list");
  return list;
}

InternalMatch match_from_python(PyObject* o, PyGraph* graph) {
  InternalMatch match;
  match.anchors = nodes_argument(attribute(o, "anchors").ptr());
  match.returning_nodes = nodes_argument(attribute(o, "returning_nodes").ptr());
  for (nb::handle value : list_attribute(o, "placeholder_nodes")) {
    match.placeholder_nodes.push_back(from_python(value.ptr(), graph));
  }
  nb::object map = attribute(o, "nodes_map");
  if (!PyDict_Check(map.ptr())) raise(PyExc_TypeError, "nodes_map of a match must be a dict");
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(map.ptr(), &at, &key, &value);) {
    match.nodes_map.emplace_back(node_of(key), from_python(value, graph));
  }
  if (match.anchors.empty()) raise(PyExc_ValueError, "a match needs an anchor");
  return match;
}

// What placeholders stand for has changed where an earlier match replaced it.
void update_python_match(PyObject* o, const InternalMatch& match, PyGraph* graph) {
  nb::object placeholders = list_attribute(o, "placeholder_nodes"), map = attribute(o, "nodes_map");
  for (size_t i = 0; i < match.placeholder_nodes.size(); ++i) {
    nb::object v = to_python(match.placeholder_nodes[i], graph);
    if (PyList_SetItem(placeholders.ptr(), static_cast<Py_ssize_t>(i), v.release().ptr()) < 0) throw PythonErrorSet{};
  }
  for (const auto& [pn, value] : match.nodes_map) {
    if (pn->op() != fx::Opcode::Placeholder) continue;
    nb::object key = own(wrap_node(nullptr, pn)), v = to_python(value, graph);
    if (PyDict_SetItem(map.ptr(), key.ptr(), v.ptr()) < 0) throw PythonErrorSet{};
  }
}

// replace_matches(graph, pattern, matches, replacement): `replacement` is a Graph, or is called with each match and
// returns one. Returns a list of added nodes for each match.
PyObject* replace_matches(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* a[4];
    parse_args("replace_matches", {"graph", "pattern", "matches", "replacement"}, 4, args, n, kw, a);
    PyGraph *graph = graph_argument(a[0], "graph"), *pattern = graph_argument(a[1], "pattern");
    nb::object given = own(PySequence_List(a[2])), replacement = nb::borrow(a[3]);
    std::vector<InternalMatch> matches;
    for (nb::handle m : given) matches.push_back(match_from_python(m.ptr(), graph));
    size_t at = 0;
    const auto choose = [&](const InternalMatch&) -> const fx::Graph* {
      PyObject* m = PyList_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(at++));
      if (!is_graph(a[3])) replacement = own(PyObject_CallOneArg(a[3], m));
      return &graph_of(graph_argument(replacement.ptr(), "replacement"));
    };
    HookScope hooks(graph);
    auto done = fx::replace_matches(graph_of(graph), graph_of(pattern), std::move(matches), choose);
    nb::object added = own(PyList_New(0));
    for (size_t i = 0; i < done.size(); ++i) {
      for (Node* made : done[i].replacements) own_handles(made);
      update_python_match(PyList_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(i)), done[i].match, graph);
      if (PyList_Append(added.ptr(), own(node_list(graph, done[i].replacements)).ptr()) < 0) throw PythonErrorSet{};
    }
    return added.release().ptr();
  });
}

PyMethodDef functions[] = {
    {"match_subgraphs", as_method(match_subgraphs), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"replace_matches", as_method(replace_matches), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyGraph* graph_argument(PyObject* o, const char* what) {
  if (!is_graph(o)) raise(PyExc_TypeError, std::string(what) + " must be a Graph, not " + Py_TYPE(o)->tp_name);
  return reinterpret_cast<PyGraph*>(o);
}

std::vector<Node*> nodes_argument(PyObject* sequence) {
  nb::object items = own(PySequence_List(sequence));
  std::vector<Node*> nodes;
  for (nb::handle item : items) nodes.push_back(node_of(item.ptr()));
  return nodes;
}

bool is_true(PyObject* o) {
  int yes = PyObject_IsTrue(o);
  if (yes < 0) throw PythonErrorSet{};
  return yes == 1;
}

struct HookScope::Observer final : fx::GraphObserver {
  explicit Observer(PyGraph* g) : graph(g) {}
  // What a hook does to the graph from Python runs the hooks by itself.
  struct Pause {
    explicit Pause(Observer& o) : observer(o) { graph_of(o.graph).set_observer(nullptr); }
    ~Pause() { graph_of(observer.graph).set_observer(&observer); }
    Observer& observer;
  };
  void created(Node* n) override {
    const Pause pause(*this);
    run_hooks(graph, "_create_node_hooks", {{nullptr, own(wrap_node(graph, n)).ptr()}});
  }
  void erased(Node* n) override {
    const Pause pause(*this);
    run_hooks(graph, "_erase_node_hooks", {{nullptr, own(wrap_node(graph, n)).ptr()}});
  }
  void replaced(Node* old_input, const Argument& new_input, Node* user) override {
    const Pause pause(*this);
    nb::object old = own(wrap_node(graph, old_input)), u = own(wrap_node(graph, user));
    nb::object name = own(PyObject_Str(to_python(new_input, graph).ptr()));
    run_hooks(graph, "_replace_hooks", {{"old", old.ptr()}, {"new", name.ptr()}, {"user", u.ptr()}});
  }
  PyGraph* graph;
};

HookScope::HookScope(PyGraph* g) : graph_(graph_of(g)) {
  if (!g->owning_module) return;
  PyObject** dict = _PyObject_GetDictPtr(g->owning_module);
  for (const char* list : {"_create_node_hooks", "_erase_node_hooks", "_replace_hooks"}) {
    PyObject* hooks = dict && *dict ? PyDict_GetItemString(*dict, list) : nullptr;
    if (hooks && PyList_Check(hooks) && PyList_GET_SIZE(hooks) > 0) observer_ = std::make_unique<Observer>(g);
  }
  if (observer_) graph_.set_observer(observer_.get());
}

HookScope::~HookScope() {
  if (observer_) graph_.set_observer(nullptr);
}

void bind_fx_rewrite(nb::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), functions) < 0) nb::raise_python_error();
}

}  // namespace fxjit::inline v0::python
