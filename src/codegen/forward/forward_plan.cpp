#include "codegen/forward/forward_plan.h"

#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

// For each step the nodes that nobody reads after it; a node that nobody reads at all is in its own.
std::vector<std::vector<int32_t>> last_uses(const ForwardPlan& plan) {
  std::vector<std::vector<int32_t>> result(plan.steps.size());
  std::vector<bool> seen(plan.steps.size(), false);
  for (size_t i = plan.steps.size(); i-- > 0;) {
    if (!seen[i]) result[i].push_back(static_cast<int32_t>(i));
    for (const fx::Node* input : plan.steps[i].node->all_input_nodes()) {
      const int32_t producer = plan.step_by_id[input->id()];
      if (seen[producer]) continue;
      seen[producer] = true;
      result[i].push_back(producer);
    }
  }
  return result;
}

void list_steps(const fx::Graph& graph, ForwardPlan& plan) {
  plan.step_by_id.assign(graph.created(), -1);
  for (const fx::Node* n : graph.nodes()) {
    for (const fx::Node* input : n->all_input_nodes()) {
      FXJIT_CHECK(plan.step_by_id[input->id()] >= 0, n->name(), " is used before it is computed: ", n->format_node());
    }
    plan.step_by_id[n->id()] = static_cast<int32_t>(plan.steps.size());
    plan.steps.push_back({n});
    if (n->op() == fx::Opcode::Placeholder) plan.steps.back().slot = plan.inputs++;
    if (n->op() == fx::Opcode::Output) break;
  }
}

}  // namespace

ForwardPlan plan_generic(const fx::Graph& graph) {
  ForwardPlan plan;
  list_steps(graph, plan);
  plan.slots = plan.inputs;
  std::vector<int32_t> free;
  const auto dying = last_uses(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    ForwardStep& step = plan.steps[i];
    if (step.slot < 0) {
      if (free.empty()) free.push_back(plan.slots++);
      step.slot = free.back();
      free.pop_back();
    }
    step.first_release = static_cast<int32_t>(plan.releases.size());
    const bool is_output = step.node->op() == fx::Opcode::Output;
    if (is_output) plan.output_slot = step.slot;
    for (int32_t producer : dying[i]) {
      const int32_t slot = plan.steps[producer].slot;
      if (slot < plan.inputs || slot == plan.output_slot) continue;
      plan.releases.push_back(slot);
      free.push_back(slot);
    }
    step.release_count = static_cast<int32_t>(plan.releases.size()) - step.first_release;
  }
  return plan;
}

std::string callee_label(const fx::Node& n) {
  switch (n.op()) {
    case fx::Opcode::CallFunction:
      return std::string(n.callable().qualified_name());
    case fx::Opcode::CallMethod:
      return "method." + std::string(n.target_str());
    case fx::Opcode::CallModule:
    case fx::Opcode::GetAttr:
      return "self." + std::string(n.target_str());
    case fx::Opcode::Placeholder:
    case fx::Opcode::Output:
    case fx::Opcode::Root:
      return std::string(fx::to_string(n.op()));
  }
  FXJIT_UNREACHABLE(n.name());
}

}  // namespace fxjit::inline v0::codegen
