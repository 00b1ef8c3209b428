#include "passes/cse.h"

#include <unordered_map>

#include "passes/alias.h"

namespace fxjit::inline v0::passes {
namespace {

// Targets made by different passes are different objects of one name; of foreign callables only the object counts.
bool same_target(const fx::Node& a, const fx::Node& b) {
  if (a.op() != fx::Opcode::CallFunction) return a.target() == b.target();
  std::string_view schema = schema_of(a);
  if (schema.find("::") != schema.npos) return schema == schema_of(b);
  return a.target() == b.target();
}

size_t hash_of(const fx::Node& n) {
  std::string_view schema = schema_of(n);
  size_t h = schema.empty() ? n.target().hash() : std::hash<std::string_view>()(schema);
  return h * 31 + n.args().hash();
}

bool equal(const fx::Node& a, const fx::Node& b) {
  return a.op() == b.op() && same_target(a, b) && a.args() == b.args() && a.kwargs() == b.kwargs();
}

}  // namespace

Result<bool> cse(PassContext& context) {
  std::unordered_multimap<size_t, fx::Node*> seen;
  std::vector<bool> reaches = reaches_caller(*context.graph);
  bool changed = false;
  for (fx::Node* n : context.graph->nodes()) {
    bool pure = n->op() == fx::Opcode::GetAttr || (n->op() == fx::Opcode::CallFunction && !n->is_impure());
    if (!pure) continue;
    size_t h = hash_of(*n);
    fx::Node* same = nullptr;
    for (auto [it, end] = seen.equal_range(h); it != end && !same; ++it)
      if (equal(*it->second, *n)) same = it->second;
    // An attribute is one tensor however often it is read.
    bool both_returned = same && n->op() == fx::Opcode::CallFunction && reaches[same->id()] && reaches[n->id()];
    if (!same || both_returned) {
      seen.emplace(h, n);
      continue;
    }
    reaches[same->id()] = reaches[same->id()] || reaches[n->id()];
    n->replace_all_uses_with(same);
    context.graph->erase_node(n);
    changed = true;
  }
  return changed;
}

}  // namespace fxjit::inline v0::passes
