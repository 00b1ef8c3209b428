// Where the values of the generic form of `forward` live: what its code and the host's callee table agree on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fxjit/api.h"
#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::codegen {

// One node. Its place in ForwardPlan::steps is the number that generated code passes to table->call.
struct ForwardStep {
  const fx::Node* node = nullptr;
  int32_t slot = -1;  // where the callee puts its result; each callee fills exactly this slot
  // Slots that are dropped after it, in ForwardPlan::releases.
  int32_t first_release = 0, release_count = 0;
};

struct ForwardPlan {
  // Placeholders come first in slots: slot i borrows in[i]. Generated code never releases these, and the host empties
  // them when `forward` has returned. All other slots own what they hold; after an error the host drops what is left.
  int32_t inputs = 0;
  int32_t slots = 0;
  int32_t output_slot = -1;  // the output node's; its value is moved to out[0] (null where the graph has no output)
  std::vector<ForwardStep> steps;  // program order, up to the output
  std::vector<int32_t> releases;
  std::vector<int32_t> step_by_id;  // by Node::id; -1 for nodes behind the output

  std::span<const int32_t> releases_of(const ForwardStep& s) const {
    return {releases.data() + s.first_release, static_cast<size_t>(s.release_count)};
  }
  const ForwardStep& step_of(const fx::Node& n) const { return steps[step_by_id[n.id()]]; }
};

// Linear in nodes and edges. A value's slot is free for others after its last use.
FXJIT_API ForwardPlan plan_generic(const fx::Graph& graph);

// What generated code shows as the name of a node's callee: "__main__.sigmoid_lowp", "self.conv1", "method.relu".
FXJIT_API std::string callee_label(const fx::Node& n);

}  // namespace fxjit::inline v0::codegen
