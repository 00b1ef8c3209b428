#include "fx/rewrite/split_plan.h"

#include <optional>
#include <unordered_set>

#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

// torch's functions that change a state of the thread instead of computing a value.
enum class StateSwitch { None, Grad, EnterAutocast, ExitAutocast };

StateSwitch state_switch(const Node& n) {
  if (n.op() != Opcode::CallFunction) return StateSwitch::None;
  const std::string_view name = n.callable().qualified_name();
  if (name == "torch._C._set_grad_enabled") return StateSwitch::Grad;
  if (name == "torch.amp.autocast_mode._enter_autocast") return StateSwitch::EnterAutocast;
  if (name == "torch.amp.autocast_mode._exit_autocast") return StateSwitch::ExitAutocast;
  return StateSwitch::None;
}

bool is_assigned(const Node& n) {
  return n.op() != Opcode::Placeholder && n.op() != Opcode::GetAttr && n.op() != Opcode::Output;
}

class Planner {
 public:
  Planner(const Graph& graph, const SplitOptions& options) : graph_(graph), options_(options) {
    plan_.partition_of.assign(graph.created(), kNoPartition);
  }

  SplitPlan run(FunctionRef<Argument(Node*)> callback) {
    for (Node* n : graph_.nodes()) {
      if (!is_assigned(*n)) continue;
      assign(n, callback(n));
      note_state(n);
    }
    for (const StateRegion& r : plan_.autocast) {
      if (!r.exit) throw AssertionError(concat("autocast must exit: nothing ends ", r.enter->name()));
    }
    if (!plan_.autocast.empty() || !plan_.grad.empty()) check_increasing();
    for (Node* n : graph_.nodes()) {
      if (n->op() == Opcode::Output) {
        for_each_node(n->args(), [&](Node* input) { record_use(input, kNoPartition); });
      } else if (is_assigned(*n) && state_switch(*n) == StateSwitch::None) {
        const size_t used = plan_.of(n);
        for_each_node(n->args(), [&](Node* input) { record_use(input, used); });
        for_each_node(n->kwargs(), [&](Node* input) { record_use(input, used); });
      }
    }
    sort();
    return std::move(plan_);
  }

 private:
  void assign(Node* n, const Argument& id) {
    const std::string text = id.to_string();
    const auto [it, added] = index_.emplace(text, plan_.partitions.size());
    if (added) {
      std::string name = options_.partition_affix.empty() ? text : concat(options_.partition_affix, "_", text);
      plan_.partitions.push_back({id, std::move(name), {}, {}, {}, {}});
    }
    plan_.partition_of[n->id()] = it->second;
  }

  int64_t number(const Node* n) const {
    const Argument& id = plan_.partitions[plan_.of(n)].id;
    if (id.is_int()) return id.as_int();
    throw AssertionError(concat("where the gradient mode or autocast is switched, partitions are numbers: ", n->name(),
                                " is in ", id.repr()));
  }

  void extend(StateRegion& region, const Node* n) { region.where.emplace(number(n), plan_.of(n)); }

  void note_state(Node* n) {
    switch (state_switch(*n)) {
      case StateSwitch::None:
        break;
      case StateSwitch::Grad:
        if (n->args().size() != 1 || !n->arg(0).is_bool()) {
          throw AssertionError(concat("Expected one bool as argument of _set_grad_enabled, at ", n->name()));
        }
        plan_.grad.push_back({n, nullptr, {}});
        break;
      case StateSwitch::EnterAutocast:
        if (n->args().contains_node()) {
          throw AssertionError(concat("Expected all args to be python constants, not Nodes, at ", n->name()));
        }
        active_.push_back(plan_.autocast.size());
        plan_.autocast.push_back({n, nullptr, {}});
        break;
      case StateSwitch::ExitAutocast:
        leave_autocast(n);
        break;
    }
    if (!plan_.grad.empty()) extend(plan_.grad.back(), n);
    for (size_t i : active_) extend(plan_.autocast[i], n);
  }

  void leave_autocast(Node* n) {
    Node* enter = n->args().size() == 1 ? n->arg(0).node_or_null() : nullptr;
    for (size_t at = 0; at < active_.size(); ++at) {
      StateRegion& region = plan_.autocast[active_[at]];
      if (region.enter != enter) continue;
      extend(region, n);
      region.exit = n;
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    throw AssertionError(concat("Expected the node that entered autocast as the one argument of ", n->name()));
  }

  void check_increasing() {
    std::optional<int64_t> highest;
    for (Node* n : graph_.nodes()) {
      if (!is_assigned(*n)) continue;
      const int64_t mine = number(n);
      if (highest && *highest > mine) {
        throw AssertionError(
            concat("autocast or set_grad_enabled require monotonically increasing partitions: highest: ", *highest,
                   ", this node's: ", mine, " (", n->name(), ")"));
      }
      highest = mine;
    }
  }

  void record_use(Node* value, size_t used) {
    const size_t defined = plan_.of(value);
    if (defined == used) return;
    if (defined != kNoPartition) {
      plan_.partitions[defined].outputs.add(value);
      if (used != kNoPartition) plan_.partitions[defined].dependents.add(used);
    }
    if (used == kNoPartition) return;
    PlannedPartition& user = plan_.partitions[used];
    user.inputs.add(value);
    if (options_.needs) {
      for (Node* needed : options_.needs(value)) {
        const size_t from = plan_.of(needed);
        if (from == used) continue;
        user.inputs.add(needed);
        if (needed->op() == Opcode::Placeholder || from == kNoPartition) continue;
        plan_.partitions[from].outputs.add(needed);
        plan_.partitions[from].dependents.add(used);
        user.dependencies.add(from);
      }
    }
    if (defined != kNoPartition) user.dependencies.add(defined);
  }

  // Last in, first out: torch.fx's order, which the names of results follow from.
  void sort() {
    std::vector<size_t> missing, ready;
    for (size_t i = 0; i < plan_.partitions.size(); ++i) {
      missing.push_back(plan_.partitions[i].dependencies.items.size());
      if (!missing[i]) ready.push_back(i);
    }
    while (!ready.empty()) {
      const size_t i = ready.back();
      ready.pop_back();
      plan_.sorted.push_back(i);
      for (size_t user : plan_.partitions[i].dependents.items) {
        if (--missing[user] == 0) ready.push_back(user);
      }
    }
    if (plan_.sorted.size() == plan_.partitions.size()) return;
    std::string names;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (missing[i]) names += concat(names.empty() ? "" : ", ", plan_.partitions[i].name);
    }
    throw RuntimeError(concat("cycle exists between partitions! It runs through or ends in: ", names));
  }

  const Graph& graph_;
  const SplitOptions& options_;
  SplitPlan plan_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<size_t> active_;  // autocast regions that were entered and not left
};

}  // namespace

SplitPlan plan_split(const Graph& graph, FunctionRef<Argument(Node*)> callback, const SplitOptions& options) {
  return Planner(graph, options).run(callback);
}

}  // namespace fxjit::inline v0::fx
