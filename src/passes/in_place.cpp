#include "passes/in_place.h"

#include <algorithm>

#include "kernel/kernel_call.h"
#include "passes/alias.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Node;
using kernel::BufferBinding;
using kernel::KernelCall;

// Reads that one copy_ may look at before it is left alone.
constexpr int kReadBudget = 4096;

struct KernelResult {
  Node* node = nullptr;  // the launch
  KernelCall* call = nullptr;
  int32_t index = 0;
};

// The kernel result that `n` is; an empty KernelResult for other nodes.
KernelResult result_of(Node* n) {
  auto call_of = [](Node* k) {
    return k->op() == fx::Opcode::CallFunction ? dynamic_cast<KernelCall*>(&k->callable()) : nullptr;
  };
  if (is_call(*n, "_operator.getitem") && n->arg(0).is_node() && n->arg(1).is_int()) {
    Node* k = n->arg(0).as_node();
    return {k, call_of(k), static_cast<int32_t>(n->arg(1).as_int())};
  }
  return {n, call_of(n), 0};
}

bool same_type(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.strides == b.strides;
}

class InPlace {
 public:
  InPlace(PassContext& context, OrderEdges& edges) : graph_(*context.graph), groups_(*context.graph), edges_(edges) {}

  bool apply(Node* copy);

 private:
  bool reads_only_what_it_writes(const KernelResult& r, Node* input) const;
  bool order_readers(const KernelResult& r, Node* copy, Node* input);
  void bind(const KernelResult& r, Node* source, Node* input);

  fx::Graph& graph_;
  MemoryGroups groups_;
  OrderEdges& edges_;
};

// Any other tensor over the input's memory is read at places that are not known here.
bool InPlace::reads_only_what_it_writes(const KernelResult& r, Node* input) const {
  const KernelCall& call = *r.call;
  const BufferBinding* out = nullptr;
  for (const BufferBinding& b : call.buffers)
    if (b.result == r.index) out = &b;
  if (!out) return false;
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const BufferBinding& b = call.buffers[i];
    if (b.operand < 0) continue;
    Node* operand = r.node->arg(b.operand).as_node();
    if (operand == input) {
      if (call.kernel.buffers[i].output || b.strides != out->strides || b.offset != out->offset) return false;
    } else if (std::ranges::count(groups_.members(*input), operand) > 0) {
      return false;
    }
  }
  return true;
}

bool InPlace::order_readers(const KernelResult& r, Node* copy, Node* input) {
  OrderEdges wanted;
  auto must_precede = [&](Node* reader) {
    if (reader == r.node || reader == copy || reader->op() == fx::Opcode::Output) return true;
    if (may_depend(*reader, *r.node, edges_, kReadBudget)) return false;
    wanted.emplace_back(reader, r.node);
    return true;
  };
  for (Node* shared : groups_.members(*input))
    for (Node* user : shared->users())
      if (!must_precede(user)) return false;
  // Nor may a call raise once the input is written.
  for (Node* n : graph_.nodes())
    if (may_raise(*n) && !must_precede(n)) return false;
  edges_.insert(edges_.end(), wanted.begin(), wanted.end());
  return true;
}

void InPlace::bind(const KernelResult& r, Node* source, Node* input) {
  KernelCall& call = *r.call;
  std::vector<fx::Argument> args(r.node->args().items().begin(), r.node->args().items().end());
  size_t operand = 0;
  while (operand < args.size() && args[operand].node_or_null() != input) ++operand;
  if (operand == args.size()) {
    args.emplace_back(input);
    r.node->set_args(fx::Argument::tuple(args));
  }
  for (BufferBinding& b : call.buffers) {
    if (b.result == r.index) {
      b.result = -1;
      b.operand = static_cast<int32_t>(operand);
    } else if (b.result > r.index) {
      --b.result;
    }
  }
  call.results.erase(call.results.begin() + r.index);
  if (source != r.node) graph_.erase_node(source);
  r.node->set_tensor_type(nullptr);
  for (Node* part : r.node->users_vector()) {
    int64_t i = part->arg(1).as_int();
    if (i > r.index) part->update_arg(1, i - 1);
    if (call.results.size() > 1) continue;
    part->replace_all_uses_with(r.node);
    r.node->set_tensor_type(part->tensor_type());
    graph_.erase_node(part);
  }
}

bool InPlace::apply(Node* copy) {
  Node* input = copy->arg(0).as_node();
  Node* source = copy->arg(1).node_or_null();
  if (!source || source->num_users() != 1 || !source->tensor_type()) return false;
  KernelResult r = result_of(source);
  if (!r.call) return false;
  if (!same_type(*input->tensor_type(), *source->tensor_type())) return false;
  if (!reads_only_what_it_writes(r, input) || !order_readers(r, copy, input)) return false;
  graph_.erase_node(copy);
  bind(r, source, input);
  return true;
}

}  // namespace

int write_in_place(PassContext& context, OrderEdges& edges) {
  std::vector<Node*> copies;
  for (Node* n : context.graph->nodes())
    if (is_call(*n, "aten::copy_")) copies.push_back(n);
  if (copies.empty()) return 0;
  InPlace in_place(context, edges);
  int count = 0;
  for (Node* copy : copies) {
    if (in_place.apply(copy))
      ++count;
    else
      context.notes.push_back(std::string(copy->name()) + ": no kernel can write the input itself");
  }
  return count;
}

}  // namespace fxjit::inline v0::passes
