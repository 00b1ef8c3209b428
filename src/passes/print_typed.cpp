#include "kernel/kernel_call.h"
#include "passes/pass.h"

namespace fxjit::inline v0::passes {
namespace {

void append_list(std::string& out, const ShapeEnv& env, const std::vector<Dim>& dims) {
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + env.to_string(dims[i]);
}

// "f32[s0, 16]"; the strides too where they are not row-major: "f32[s0, 16] (1, s0)".
std::string type_text(ShapeEnv& env, const TensorType& t) {
  std::string out = std::string(to_text(t.dtype)) + "[";
  append_list(out, env, t.sizes);
  out += "]";
  if (is_contiguous(env, t)) return out;
  out += " (";
  append_list(out, env, t.strides);
  return out + ")";
}

std::string result_text(const fx::Node& n, ShapeEnv& env) {
  if (n.tensor_type()) return " : " + type_text(env, *n.tensor_type());
  if (n.op() != fx::Opcode::CallFunction) return "";
  const auto* call = dynamic_cast<const kernel::KernelCall*>(&n.callable());
  if (!call) return "";
  std::string out;
  for (const TensorTypePtr& t : call->results) out += (out.empty() ? " : (" : ", ") + type_text(env, *t);
  return out.empty() ? out : out + ")";
}

std::string call_text(const fx::Node& n) {
  std::string out = n.op() == fx::Opcode::CallFunction ? std::string(schema_of(n)) : n.target().to_string();
  out += "(";
  for (size_t i = 0; i < n.args().size(); ++i) out += (i ? ", " : "") + n.arg(i).to_string();
  for (const auto& [key, value] : n.kwargs().entries()) out += ", " + key.to_string() + "=" + value.to_string();
  return out + ")";
}

// "  writes %x0": what a kernel does to its operands.
std::string writes_text(const fx::Node& n) {
  const auto* call =
      n.op() == fx::Opcode::CallFunction ? dynamic_cast<const kernel::KernelCall*>(&n.callable()) : nullptr;
  std::string out;
  for (size_t i = 0; call && i < call->buffers.size(); ++i) {
    if (!call->kernel.buffers[i].output || call->buffers[i].operand < 0) continue;
    out += (out.empty() ? "  writes " : ", ") + n.arg(call->buffers[i].operand).to_string();
  }
  return out;
}

}  // namespace

std::string print_typed(const fx::Graph& graph, const ShapeEnv& env) {
  ShapeEnv scratch = env;  // asking for row-major strides makes expressions
  std::string out;
  for (const fx::Node* n : graph.nodes()) {
    if (n->op() == fx::Opcode::Output) {
      out += "return " + n->arg(0).to_string() + "\n";
      continue;
    }
    out += "%" + std::string(n->name()) + result_text(*n, scratch) + " = ";
    switch (n->op()) {
      case fx::Opcode::Placeholder:
        out += "placeholder";
        break;
      case fx::Opcode::GetAttr:
        out += "get_attr " + std::string(n->target_str());
        break;
      case fx::Opcode::CallFunction:
      case fx::Opcode::CallMethod:
      case fx::Opcode::CallModule:
      case fx::Opcode::Output:
      case fx::Opcode::Root:
        out += call_text(*n) + writes_text(*n);
        break;
    }
    out += "\n";
  }
  return out;
}

}  // namespace fxjit::inline v0::passes
