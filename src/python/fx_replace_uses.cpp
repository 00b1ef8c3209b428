// node.replace_all_uses_with
#include <array>
#include <span>
#include <vector>

#include "python/fx_args.h"
#include "python/fx_graph.h"

namespace fxjit::inline v0::python {

namespace {

using fx::Argument;
using fx::Node;

// All users, as a list: no question to Python on the way. They are taken first, since allocating a list or a wrapper
// may collect garbage, and that may run anything.
PyObject* replace_uses(PyGraph* g, Node* n, const Argument& with) {
  std::array<Node*, 16> few;
  std::vector<Node*> many;
  std::span<Node*> users(few.data(), n->num_users());
  if (n->num_users() > few.size()) {
    many = n->users_vector();
    users = many;
  } else {
    size_t at = 0;
    for (Node* user : n->users()) few[at++] = user;
  }
  nb::object changed = own(PyList_New(static_cast<Py_ssize_t>(users.size())));
  Py_ssize_t at = 0;
  for (Node* user : users) PyList_SET_ITEM(changed.ptr(), at++, wrap_node(g, user));
  for (Node* user : users) user->replace_input_with(n, with);
  return changed.release().ptr();
}

}  // namespace

PyObject* node_replace_uses(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* kw) {
  return guarded([&] {
    PyObject* a[3] = {};
    if (nargs == 1 && !kw) {
      a[0] = args[0];
    } else {
      parse_args("replace_all_uses_with", {"replace_with", "delete_user_cb", "propagate_meta"}, 1, args, nargs, kw, a,
                 2);
    }
    PyGraph* g = reinterpret_cast<PyNode*>(o)->graph;
    Argument replacement = from_python(a[0], g);  // a node, or a constant as torch.fx takes it too
    const bool ask = is_given(a[1]) || hooks_in(g, "_replace_hooks");
    const bool propagate = a[2] && PyObject_IsTrue(a[2]) == 1;
    if (!ask && !propagate) return replace_uses(g, node_of(o), replacement);
    auto filter = [&](Node* user) {
      nb::object u = own(wrap_node(g, user));
      if (is_given(a[1])) {
        nb::object keep = own(PyObject_CallOneArg(a[1], u.ptr()));
        int yes = PyObject_IsTrue(keep.ptr());
        if (yes < 0) throw PythonErrorSet{};
        if (!yes) return false;
      }
      nb::object name = own(PyObject_Str(a[0]));
      run_hooks(g, "_replace_hooks", {{"old", o}, {"new", name.ptr()}, {"user", u.ptr()}});
      return true;
    };
    FunctionRef<bool(Node*)> callback = ask ? FunctionRef<bool(Node*)>(filter) : FunctionRef<bool(Node*)>();
    if (propagate) return node_list(g, node_of(o)->replace_all_uses_with(node_of(a[0]), callback, true));
    return node_list(g, node_of(o)->replace_all_uses_with(replacement, callback));
  });
}

}  // namespace fxjit::inline v0::python
