#include "kernel/kernel_call.h"
#include "passes/pass.h"
#include "support/errors.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Node;
using kernel::KernelCall;

void check_type(const Node& n, const TensorType& t, const ShapeEnv& env) {
  FXJIT_CHECK(t.sizes.size() == t.strides.size(), "%", n.name(), " has as many strides as sizes");
  for (const auto* dims : {&t.sizes, &t.strides})
    for (Dim d : *dims)
      FXJIT_CHECK(d.id >= 0 && static_cast<size_t>(d.id) < env.size(), "%", n.name(), " has sizes of this ShapeEnv");
}

// A call that gives a tuple has users that take its parts, and no type.
bool gives_tuple(const Node& n) {
  if (const KernelCall* call = kernel::kernel_call_of(n)) return call->results.size() > 1;
  if (n.tensor_type() || n.num_users() == 0) return false;
  for (const Node* user : n.users())
    if (!is_call(*user, "_operator.getitem")) return false;
  return true;
}

void check_operands(const Node& n) {
  bool part = is_call(n, "_operator.getitem");
  bool tensors_only = n.op() == fx::Opcode::CallFunction &&
                      (schema_of(n).starts_with("aten::") || kernel::kernel_call_of(n) != nullptr);
  for (const Node* input : n.all_input_nodes()) {
    FXJIT_CHECK(input->op() != fx::Opcode::Output, "%", n.name(), " reads the output");
    if (gives_tuple(*input)) {
      FXJIT_CHECK(part, "%", n.name(), " reads the tuple %", input->name(), " as a tensor");
    } else if (tensors_only && input->op() == fx::Opcode::CallFunction) {
      FXJIT_CHECK(input->tensor_type(), "%", n.name(), " reads %", input->name(), ", which has no type");
    }
  }
}

void check_kernel_types(const Node& n, const KernelCall& call) {
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const kernel::BufferBinding& b = call.buffers[i];
    const TensorType* type = nullptr;
    if (b.operand >= 0) {
      FXJIT_CHECK(static_cast<size_t>(b.operand) < n.args().size() && n.arg(b.operand).is_node(), "buffer ", i, " of %",
                  n.name(), " is bound to an operand");
      type = n.arg(b.operand).as_node()->tensor_type().get();
    } else {
      type = call.results[b.result].get();
    }
    FXJIT_CHECK(type && type->dtype == call.kernel.buffers[i].dtype, "buffer ", i, " of %", n.name(),
                " has its tensor's element type");
  }
  for (const TensorTypePtr& result : call.results) FXJIT_CHECK(result, "each result of %", n.name(), " has a type");
  if (call.results.size() == 1)
    FXJIT_CHECK(n.tensor_type() && *n.tensor_type() == *call.results[0], "%", n.name(), " has its result's type");
}

void check_getitem(const Node& n) {
  const Node* tuple = n.arg(0).node_or_null();
  const KernelCall* call = tuple ? kernel::kernel_call_of(*tuple) : nullptr;
  if (!call) return;
  FXJIT_CHECK(
      n.arg(1).is_int() && n.arg(1).as_int() >= 0 && n.arg(1).as_int() < static_cast<int64_t>(call->results.size()),
      "%", n.name(), " takes a result of %", tuple->name());
  FXJIT_CHECK(n.tensor_type() && *n.tensor_type() == *call->results[n.arg(1).as_int()], "%", n.name(),
              " has its result's type");
}

// What an aten::copy_ or a kernel wrote is not read afterwards: the value that was meant is the one before.
void check_writes(const fx::Graph& graph) {
  std::vector<bool> written(graph.created(), false);
  for (const Node* n : graph.nodes()) {
    if (n->op() != fx::Opcode::CallFunction) continue;
    if (!(is_call(*n, "aten::copy_") || kernel::kernel_call_of(*n))) continue;
    for (const Node* input : n->all_input_nodes())
      FXJIT_CHECK(!written[input->id()], "%", n->name(), " reads %", input->name(), ", which was written before");
    if (is_call(*n, "aten::copy_")) written[n->arg(0).as_node()->id()] = true;
    if (const KernelCall* call = kernel::kernel_call_of(*n)) {
      for (size_t i = 0; i < call->buffers.size(); ++i)
        if (call->kernel.buffers[i].output && call->buffers[i].operand >= 0)
          written[n->arg(call->buffers[i].operand).as_node()->id()] = true;
    }
  }
}

}  // namespace

void verify(const PassContext& context) {
  const fx::Graph& graph = *context.graph;
  graph.lint();
  FXJIT_CHECK(graph.output_node(), "a typed graph has an output");
  for (const Node* n : graph.nodes()) {
    bool allowed = n->op() != fx::Opcode::CallModule && n->op() != fx::Opcode::CallMethod;
    FXJIT_CHECK(allowed, "%", n->name(), " is a ", fx::to_string(n->op()), ": a typed graph calls functions only");
    if (n->tensor_type()) check_type(*n, *n->tensor_type(), context.env);
    check_operands(*n);
    if (const KernelCall* call = kernel::kernel_call_of(*n)) {
      kernel::verify(*call);
      kernel::verify(call->kernel);
      for (const TensorTypePtr& t : call->results) check_type(*n, *t, context.env);
      check_kernel_types(*n, *call);
    }
    if (is_call(*n, "_operator.getitem")) check_getitem(*n);
  }
  if (context.functional) check_writes(graph);
}

}  // namespace fxjit::inline v0::passes
