#include "passes/decompose.h"
#include "passes/infer.h"

namespace fxjit::inline v0::passes {

using fx::Node;

Node* decompose_parts(const Node& n, TypedBuilder& build) {
  std::optional<Parts> cut = parts_of(n, build.env());
  if (!cut) return nullptr;
  const auto count = static_cast<int64_t>(cut->parts.size());
  for (const Node* user : n.users()) {
    const bool part = is_call(*user, "_operator.getitem") && user->arg(1).is_int();
    if (!part || user->arg(1).as_int() < 0 || user->arg(1).as_int() >= count) return nullptr;
  }
  Node* x = n.arg(0).as_node();
  for (Node* user : n.users_vector()) {
    const Part& p = cut->parts[user->arg(1).as_int()];
    Node* view = cut->select ? build.call("aten::select.int", {x, cut->dim, p.start})
                             : build.call("aten::slice.Tensor", {x, cut->dim, p.start, p.end, 1});
    user->replace_all_uses_with(view);
    build.graph().erase_node(user);
  }
  return const_cast<Node*>(&n);
}

}  // namespace fxjit::inline v0::passes
