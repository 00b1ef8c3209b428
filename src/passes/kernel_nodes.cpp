#include "passes/kernel_nodes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "kernel/kernel_call.h"
#include "ops/number.h"
#include "support/errors.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Node;
using kernel::KernelCall;
using kernel::Lowered;
using NodeSet = std::unordered_set<const Node*>;

class Lowering {
 public:
  Lowering(PassContext& context, const FusionGraph& fusion) : context_(context), fusion_(fusion) {}

  void run(std::vector<Node*> members);
  std::vector<FusedGroup> take() { return std::move(done_); }

 private:
  bool escapes(const Node& n, const NodeSet& group) const;
  std::vector<Node*> with_views(const std::vector<Node*>& members, const NodeSet& group, bool outer_views) const;
  Result<FusedGroup> lower(const std::vector<Node*>& members);
  size_t longest_prefix(const std::vector<Node*>& members, FusedGroup& group);

  PassContext& context_;
  const FusionGraph& fusion_;
  std::vector<FusedGroup> done_;
};

// True if the value is read outside of the group, through views or not.
bool Lowering::escapes(const Node& n, const NodeSet& group) const {
  for (const Node* user : n.users()) {
    if (fusion_.is_view(*user) ? escapes(*user, group) : !group.contains(user)) return true;
  }
  return false;
}

// The members and the views that they read through, in program order. Views of values from outside are looked through
// only with `outer_views`; else they are operands themselves.
std::vector<Node*> Lowering::with_views(const std::vector<Node*>& members, const NodeSet& group,
                                        bool outer_views) const {
  std::vector<Node*> nodes = members;
  NodeSet seen;
  for (const Node* member : members) {
    for (Node* input : member->all_input_nodes()) {
      if (!outer_views && !group.contains(fusion_.base(input))) continue;
      for (Node* view = input; fusion_.is_view(*view) && seen.insert(view).second; view = view->arg(0).as_node())
        nodes.push_back(view);
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return *a < *b; });
  return nodes;
}

Result<FusedGroup> Lowering::lower(const std::vector<Node*>& members) {
  NodeSet group(members.begin(), members.end());
  FusedGroup fused;
  fused.members = members;
  for (Node* m : members)
    if (escapes(*m, group)) fused.outputs.push_back(m);
  // A group that nobody reads: dce was left out.
  if (fused.outputs.empty()) fused.outputs.push_back(members.back());
  Failure refused;
  for (bool outer_views : {true, false}) {
    std::vector<Node*> nodes = with_views(members, group, outer_views);
    Result<Lowered> lowered = kernel::lower_group(context_.env, nodes, fused.outputs);
    if (lowered) {
      fused.lowered = std::move(*lowered);
      return fused;
    }
    if (outer_views) refused = lowered.failure();
  }
  return refused;
}

// A front part of a group in program order is free of paths that leave it and come back, like the group; so is the
// rest.
size_t Lowering::longest_prefix(const std::vector<Node*>& members, FusedGroup& group) {
  size_t works = 0, fails = members.size();
  while (fails - works > 1) {
    size_t middle = (works + fails) / 2;
    Result<FusedGroup> part = lower({members.begin(), members.begin() + static_cast<std::ptrdiff_t>(middle)});
    if (part) group = std::move(*part);
    (part ? works : fails) = middle;
  }
  return works;
}

void Lowering::run(std::vector<Node*> members) {
  while (!members.empty()) {
    Result<FusedGroup> whole = lower(members);
    if (whole) {
      done_.push_back(std::move(*whole));
      return;
    }
    FusedGroup part;
    size_t taken = longest_prefix(members, part);
    context_.notes.push_back(std::string(members[taken]->name()) +
                             (taken ? ": not in one kernel with what is before it: " : ": ") + whole.reason());
    if (taken > 0) done_.push_back(std::move(part));
    members.erase(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(taken, 1)));
  }
}

// "fused_mul_sigmoid": the operators in order, each once, as far as a name stays readable.
std::string name_of(const FusedGroup& group) {
  std::string name = "fused";
  std::vector<std::string_view> seen;
  for (const Node* m : group.members) {
    std::string_view op = m->callable().base_name();
    if (std::find(seen.begin(), seen.end(), op) != seen.end()) continue;
    if (name.size() + op.size() > 48) break;
    seen.push_back(op);
    name += "_" + std::string(op);
  }
  return name;
}

kernel::ScalarBinding bind_scalar(const kernel::ScalarSource& source) {
  kernel::ScalarBinding b;
  switch (source.kind) {
    case kernel::ScalarSource::Constant:
      b.kind = kernel::ScalarBinding::Constant;
      b.bits = source.bits;
      break;
    case kernel::ScalarSource::Symbol:
      b.kind = kernel::ScalarBinding::Size;
      b.size = source.symbol;
      break;
    case kernel::ScalarSource::Host:
      b.kind = kernel::ScalarBinding::Input;
      b.index = ops::host_number(*source.node)->input;
      break;
  }
  return b;
}

fx::Ref<KernelCall> make_call(const FusedGroup& group, std::vector<Node*>& operands) {
  auto call = fx::make_ref<KernelCall>(name_of(group));
  const Lowered& l = group.lowered;
  call->kernel = l.kernel;
  call->extents = l.extents;
  for (Node* out : group.outputs) call->results.push_back(out->tensor_type());
  for (const Node* m : group.members) {
    call->sources.emplace_back(m->name());
    const fx::Argument* scope = m->meta_if_any() ? m->meta_if_any()->find("scope") : nullptr;
    if (scope && std::find(call->scopes.begin(), call->scopes.end(), scope->as_int()) == call->scopes.end()) {
      call->scopes.push_back(scope->as_int());
    }
  }
  for (size_t i = 0; i < l.buffers.size(); ++i) {
    kernel::BufferBinding b;
    b.offset = l.buffers[i].offset;
    b.strides = l.buffers[i].strides;
    auto place = [](const std::vector<Node*>& nodes, Node* n) {
      return static_cast<int32_t>(std::find(nodes.begin(), nodes.end(), n) - nodes.begin());
    };
    if (l.kernel.buffers[i].output) {
      b.result = place(group.outputs, l.buffers[i].node);
    } else {
      b.operand = place(operands, l.buffers[i].node);
      if (b.operand == static_cast<int32_t>(operands.size())) operands.push_back(l.buffers[i].node);
    }
    call->buffers.push_back(std::move(b));
  }
  for (const kernel::ScalarSource& s : l.scalars) call->scalars.push_back(bind_scalar(s));
  return call;
}

// Views of a member that only kernels looked through.
void drop_readers(fx::Graph& graph, Node* n) {
  for (Node* user : n->users_vector()) {
    drop_readers(graph, user);
    graph.erase_node(user);
  }
}

void copy_meta(const Node& from, Node* to) {
  if (from.meta_if_any()) to->meta().copy_from(*from.meta_if_any());
}

}  // namespace

std::vector<FusedGroup> lower_groups(PassContext& context, const FusionGraph& fusion,
                                     const std::vector<std::vector<Node*>>& groups) {
  Lowering lowering(context, fusion);
  for (const std::vector<Node*>& group : groups) lowering.run(group);
  return lowering.take();
}

void replace_groups(PassContext& context, const std::vector<FusedGroup>& groups, Priorities& priorities) {
  fx::Graph& graph = *context.graph;
  auto scope = graph.inserting_before(graph.output_node());
  const fx::CallableRef getitem = fx::builtin_function("_operator.getitem");
  std::unordered_map<Node*, Node*> replaced;
  for (const FusedGroup& group : groups) {
    std::vector<Node*> operands;
    fx::Ref<KernelCall> call = make_call(group, operands);
    std::vector<fx::Argument> args;
    for (Node* operand : operands) {
      auto it = replaced.find(operand);
      args.emplace_back(it == replaced.end() ? operand : it->second);
    }
    Node* node = graph.call_function(call, fx::Argument::tuple(args));
    copy_meta(*group.members.back(), node);
    const int64_t place = priorities[node] = priorities[group.members.back()];
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      Node* value = node;
      if (group.outputs.size() > 1) {
        value = graph.call_function(getitem, fx::Argument::tuple({node, static_cast<int64_t>(i)}));
        copy_meta(*group.outputs[i], value);
        priorities[value] = place;
      }
      value->set_tensor_type(group.outputs[i]->tensor_type());
      group.outputs[i]->replace_all_uses_with(value);
      replaced[group.outputs[i]] = value;
    }
  }
  // Members read each other through views, which go with them.
  for (const FusedGroup& group : groups)
    for (Node* m : group.members) m->set_args(fx::Argument::tuple({}));
  for (const FusedGroup& group : groups)
    for (Node* m : group.members) {
      drop_readers(graph, m);
      graph.erase_node(m);
    }
}

}  // namespace fxjit::inline v0::passes
