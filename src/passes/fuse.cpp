#include "passes/fuse.h"

#include "passes/alias.h"
#include "passes/grouping.h"
#include "passes/in_place.h"
#include "passes/infer_types.h"
#include "passes/kernel_nodes.h"
#include "passes/schedule.h"

namespace fxjit::inline v0::passes {

Result<bool> fuse(PassContext& context) {
  for (const fx::Node* n : context.graph->nodes()) {
    if (context.functional || effect_of(*n) != Effect::Write) continue;
    context.notes.push_back("nothing is fused: %" + std::string(n->name()) + " writes an operand");
    return false;
  }
  settle_sizes(context);  // what the passes before have asked
  Priorities priorities;
  for (const fx::Node* n : context.graph->nodes()) priorities.emplace(n, static_cast<int64_t>(priorities.size()));
  FusionGraph fusion(context);
  std::vector<FusedGroup> groups = lower_groups(context, fusion, find_groups(*context.graph, fusion));
  if (groups.empty()) return false;
  replace_groups(context, groups, priorities);
  OrderEdges edges;
  write_in_place(context, edges);
  reorder(*context.graph, priorities, edges);
  context.graph->eliminate_dead_code();
  return true;
}

}  // namespace fxjit::inline v0::passes
