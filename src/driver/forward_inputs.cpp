#include "driver/forward_inputs.h"

#include <algorithm>
#include <set>

#include "kernel/kernel_call.h"
#include "ops/number.h"
#include "support/errors.h"
#include "torch/layout.h"

namespace fxjit::inline v0::driver {
namespace {

// Behind the tensors; those that are derived are computed, not read. A number is a word of the frame where a callee
// takes it.
void list_numbers(const torch_::TypedProgram& program, const fx::Graph& graph, codegen::ForwardInputs& out) {
  const auto first = static_cast<int32_t>(out.inputs.size());
  std::vector<const fx::Node*> nodes(program.numbers.size(), nullptr);
  for (const fx::Node* n : graph.nodes())
    if (const auto number = ops::host_number(*n)) nodes.at(static_cast<size_t>(number->input - first)) = n;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const torch_::ProgramNumber& n = program.numbers[i];
    codegen::ForwardInput input;
    input.kind = codegen::ForwardInput::Number;
    input.node = nodes[i];
    input.is_float = n.number.is_float;
    input.fits_bfloat16 = n.bounded && !n.baked;
    input.derived = n.number.derived;
    if (n.baked && !input.derived) input.baked = n.number.bits;
    if (input.derived) {
      for (codegen::NumberOperand* o : {&input.derived->a, &input.derived->b})
        if (o->number >= 0) o->number += first;
    }
    out.inputs.push_back(std::move(input));
  }
  std::set<int32_t> taken;
  for (const fx::Node* n : graph.nodes()) {
    if (n->op() != fx::Opcode::CallFunction || kernel::kernel_call_of(*n)) continue;
    for (const fx::Node* operand : n->all_input_nodes())
      if (const auto number = ops::host_number(*operand); number && taken.insert(number->input).second)
        out.callee_numbers.push_back(number->input);
  }
}

}  // namespace

std::optional<torch_::SymbolRef> symbol_of(const codegen::ForwardInputs& inputs, const fx::Argument& a) {
  const auto number = a.is_node() ? ops::host_number(*a.as_node()) : std::nullopt;
  if (!number) return std::nullopt;
  const std::vector<int32_t>& taken = inputs.callee_numbers;
  const auto at = std::find(taken.begin(), taken.end(), number->input) - taken.begin();
  return torch_::SymbolRef{static_cast<int32_t>(inputs.callee_dims.size()) + static_cast<int32_t>(at),
                           number->dtype == DType::Float64};
}

void list_inputs(const torch_::TypedProgram& program, const fx::Graph& graph, const CompileRequest& request,
                 codegen::ForwardInputs* inputs) {
  codegen::ForwardInputs& out = *inputs;
  const torch_::HostState& state = request.state;
  out.words = {state.included, state.excluded, state.flags};
  out.layout = torch_::tensor_layout().layout;
  for (const fx::Node* n : graph.nodes()) {
    if (n->op() != fx::Opcode::Placeholder || ops::host_number(*n)) continue;
    FXJIT_CHECK(out.inputs.size() < request.key_sets.size(), "a pass added an input");
    codegen::ForwardInput input;
    input.node = n;
    input.type = n->tensor_type();
    input.key_set = request.key_sets[out.inputs.size()];
    if (torch_::grad_mode(state)) input.requires_grad = false;
    out.inputs.push_back(std::move(input));
  }
  FXJIT_CHECK(out.inputs.size() == request.key_sets.size(), "a pass dropped an input");
  for (int32_t m : program.mutated_inputs)
    for (int32_t i = 0; i < static_cast<int32_t>(out.inputs.size()); ++i)
      if (i != m) out.apart.emplace_back(m, i);
  list_numbers(program, graph, out);
}

}  // namespace fxjit::inline v0::driver
