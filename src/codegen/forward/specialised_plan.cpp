#include "codegen/forward/specialised_plan.h"

#include <algorithm>

#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

// _operator.getitem of a kernel or operator with several results: not a call, but the name of one of them.
const fx::Node* tuple_of_getitem(const fx::Node& n) {
  if (n.op() != fx::Opcode::CallFunction || n.callable().qualified_name() != "_operator.getitem") return nullptr;
  const fx::Node* tuple = n.arg(0).node_or_null();
  if (!tuple || tuple->op() != fx::Opcode::CallFunction) return nullptr;
  const kernel::KernelCall* call = kernel::kernel_call_of(*tuple);
  return call ? (call->results.size() != 1 ? tuple : nullptr) : (tuple->tensor_type() ? nullptr : tuple);
}

// How many of an operator's results the graph names; 0 where its one result is the node itself.
int32_t named_results(const fx::Node& n) {
  int64_t count = 0;
  for (const fx::Node* user : n.users())
    if (tuple_of_getitem(*user) == &n) count = std::max(count, user->arg(1).as_int() + 1);
  return static_cast<int32_t>(count);
}

class Planner {
 public:
  Planner(const fx::Graph& graph, ShapeEnv& env, const ForwardInputs& inputs)
      : graph_(graph), env_(env), inputs_(inputs) {}

  SpecialisedPlan run() {
    plan_.value_by_id.assign(graph_.created(), -1);
    first_result_.assign(graph_.created(), -1);
    list_inputs();
    for (const fx::Node* n : graph_.nodes()) list_node(*n);
    for (const fx::Node* n : graph_.nodes()) mark_callee_operands(*n);
    place_values();
    place_regions();
    place_outputs();
    plan_.stores_symbols = plan_.steps.size() > kStepsPerFunction;
    plan_.symbols = static_cast<int32_t>(inputs_.callee_dims.size() + inputs_.callee_numbers.size());
    if (plan_.stores_symbols) plan_.symbols += static_cast<int32_t>(env_.symbols().size());
    return std::move(plan_);
  }

 private:
  int32_t add_value(ForwardValue::Where where, int32_t index, TensorTypePtr type) {
    plan_.values.push_back({where, index, std::move(type)});
    return static_cast<int32_t>(plan_.values.size()) - 1;
  }

  void list_inputs() {
    plan_.inputs = static_cast<int32_t>(inputs_.inputs.size());
    plan_.input_needs_slot.assign(plan_.inputs, false);
    for (int32_t i = 0; i < plan_.inputs; ++i) {
      const ForwardInput& input = inputs_.inputs[i];
      const auto where = input.kind == ForwardInput::Tensor ? ForwardValue::Input : ForwardValue::Nowhere;
      const int32_t value = add_value(where, i, input.type);
      if (input.node) plan_.value_by_id[input.node->id()] = value;
    }
  }

  // Values and steps, in program order. Where a value lies is not known yet, except for inputs.
  void list_node(const fx::Node& n) {
    switch (n.op()) {
      case fx::Opcode::Placeholder:
      case fx::Opcode::GetAttr:
        FXJIT_CHECK(plan_.value_by_id[n.id()] >= 0, "no input for ", n.format_node());
        return;
      case fx::Opcode::Output:
        output_ = &n;
        return;
      case fx::Opcode::CallFunction:
        break;
      case fx::Opcode::CallMethod:
      case fx::Opcode::CallModule:
      case fx::Opcode::Root:
        FXJIT_UNREACHABLE("in a typed graph: ", n.format_node());
    }
    if (const fx::Node* tuple = tuple_of_getitem(n)) {
      plan_.value_by_id[n.id()] = first_result_[tuple->id()] + static_cast<int32_t>(n.arg(1).as_int());
      return;
    }
    SpecialisedStep step{&n, {}, {}};
    if (const kernel::KernelCall* call = kernel::kernel_call_of(n)) {
      kernel::verify(*call);
      for (const TensorTypePtr& type : call->results) {
        step.results.push_back(add_value(ForwardValue::Scratch, -1, type));
      }
      first_result_[n.id()] = step.results.empty() ? -1 : step.results[0];
      if (step.results.size() == 1) plan_.value_by_id[n.id()] = step.results[0];
    } else if (const int32_t count = named_results(n)) {
      std::vector<TensorTypePtr> types(count);
      for (const fx::Node* user : n.users())
        if (tuple_of_getitem(*user) == &n) types[user->arg(1).as_int()] = user->tensor_type();
      for (TensorTypePtr& type : types) step.results.push_back(add_value(ForwardValue::Slot, -1, std::move(type)));
      first_result_[n.id()] = step.results[0];
    } else {
      step.results.push_back(add_value(ForwardValue::Slot, -1, n.tensor_type()));
      plan_.value_by_id[n.id()] = step.results[0];
    }
    plan_.steps.push_back(std::move(step));
  }

  // What a callee or the caller sees must be a tensor, in a slot.
  void mark_callee_operands(const fx::Node& n) {
    const bool output = n.op() == fx::Opcode::Output;
    if (!output && (n.op() != fx::Opcode::CallFunction || tuple_of_getitem(n))) return;
    const kernel::KernelCall* call = output ? nullptr : kernel::kernel_call_of(n);
    if (!call) {
      for (const fx::Node* input : n.all_input_nodes()) needs_slot(*input);
      return;
    }
    for (const kernel::BufferBinding& b : call->buffers) {
      if (b.operand < 0 || !writes(*call, b)) continue;
      // An operand that is written is asked of the host, which knows copy-on-write: it needs a slot, if it has a
      // tensor.
      const fx::Node& operand = *n.arg(b.operand).as_node();
      if (plan_.value_of(operand).where == ForwardValue::Input) needs_slot(operand);
    }
  }

  static bool writes(const kernel::KernelCall& call, const kernel::BufferBinding& b) {
    return call.kernel.buffers[&b - call.buffers.data()].output;
  }

  void needs_slot(const fx::Node& n) {
    const int32_t index = plan_.value_by_id[n.id()];
    FXJIT_CHECK(index >= 0, n.name(), " is a tuple of kernel results and cannot be an operand: ", n.format_node());
    ForwardValue& v = plan_.values[index];
    if (v.where == ForwardValue::Input) plan_.input_needs_slot[v.index] = true;
    if (v.where == ForwardValue::Scratch) v.where = ForwardValue::Slot;
  }

  // By step: the values nobody reads after it.
  std::vector<std::vector<int32_t>> last_uses() const {
    std::vector<std::vector<int32_t>> dying(plan_.steps.size());
    std::vector<bool> seen(plan_.values.size(), false);
    for (const fx::Node* input : output_->all_input_nodes()) seen[plan_.value_by_id[input->id()]] = true;
    for (size_t i = plan_.steps.size(); i-- > 0;) {
      auto visit = [&](int32_t value) {
        if (value < 0 || seen[value]) return;
        seen[value] = true;
        dying[i].push_back(value);
      };
      for (int32_t result : plan_.steps[i].results) visit(result);
      for (const fx::Node* input : plan_.steps[i].node->all_input_nodes()) visit(plan_.value_by_id[input->id()]);
    }
    return dying;
  }

  void place_values() {
    FXJIT_CHECK(output_ != nullptr, "a typed graph without an output");
    plan_.slots = plan_.inputs;
    const auto dying = last_uses();
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      SpecialisedStep& step = plan_.steps[i];
      for (int32_t result : step.results) {
        ForwardValue& v = plan_.values[result];
        v.index = v.where == ForwardValue::Slot ? take_slot() : take_region(*v.type);
      }
      for (int32_t value : dying[i]) {
        const ForwardValue& v = plan_.values[value];
        if (v.where == ForwardValue::Slot) {
          step.releases.push_back(v.index);
          free_slots_.push_back(v.index);
        } else if (v.where == ForwardValue::Scratch) {
          free_regions_.push_back(v.index);
        }
      }
    }
  }

  int32_t take_slot() {
    if (free_slots_.empty()) return plan_.slots++;
    const int32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  // A region that is free is taken where its size is known to do: the same expression, or two numbers.
  int32_t take_region(const TensorType& type) {
    const Dim numel = env_.product(type.sizes);
    const auto bytes = static_cast<int64_t>(size_of(type.dtype));
    int32_t best = -1;
    for (int32_t r : free_regions_) {
      if (fits(plan_.regions[r], numel, bytes) && (best < 0 || hint_bytes(r) < hint_bytes(best))) best = r;
    }
    if (best >= 0) {
      std::erase(free_regions_, best);
      return best;
    }
    plan_.regions.push_back({numel, bytes});
    return static_cast<int32_t>(plan_.regions.size()) - 1;
  }

  bool fits(const ScratchRegion& r, Dim numel, int64_t bytes) const {
    if (r.numel == numel) return bytes <= r.element_bytes;
    return env_.is_const(numel) && env_.is_const(r.numel) &&
           env_.hint(numel) * bytes <= env_.hint(r.numel) * r.element_bytes;
  }

  int64_t hint_bytes(int32_t r) const { return env_.hint(plan_.regions[r].numel) * plan_.regions[r].element_bytes; }

  // Regions of known size first: their offsets, and those of the first one behind them, are numbers.
  void place_regions() {
    plan_.arena_bytes = env_.constant(0);
    for (const bool known : {true, false}) {
      for (ScratchRegion& r : plan_.regions) {
        if (env_.is_const(r.numel) != known) continue;
        r.offset = plan_.arena_bytes;
        const Dim bytes = env_.mul(r.numel, env_.constant(r.element_bytes));
        const Dim lines = env_.floordiv(env_.add(bytes, env_.constant(63)), env_.constant(64));
        plan_.arena_bytes = env_.add(plan_.arena_bytes, env_.mul(lines, env_.constant(64)));
      }
    }
  }

  void place_outputs() {
    std::vector<bool> moved(plan_.slots, false);
    fx::for_each_node(output_->args(), [&](fx::Node* n) {
      const int32_t slot = plan_.slot_of(*n);
      const bool owned = slot >= plan_.inputs && !moved[slot];
      moved[slot] = true;
      plan_.outputs.push_back({slot, owned});
    });
  }

  const fx::Graph& graph_;
  ShapeEnv& env_;
  const ForwardInputs& inputs_;
  SpecialisedPlan plan_;
  std::vector<int32_t> first_result_;  // by Node::id of what has several results: the first one
  const fx::Node* output_ = nullptr;
  std::vector<int32_t> free_slots_, free_regions_;
};

}  // namespace

SpecialisedPlan plan_specialised(const fx::Graph& typed, ShapeEnv& env, const ForwardInputs& inputs) {
  return Planner(typed, env, inputs).run();
}

int32_t SpecialisedPlan::slot_of(const fx::Node& n) const {
  const int32_t index = value_by_id[n.id()];
  FXJIT_CHECK(index >= 0, n.name(), " has no value: ", n.format_node());
  const ForwardValue& v = values[index];
  FXJIT_CHECK(v.where == ForwardValue::Input || v.where == ForwardValue::Slot, n.name(),
              " is not in a slot: ", n.format_node());
  return v.index;
}

}  // namespace fxjit::inline v0::codegen
