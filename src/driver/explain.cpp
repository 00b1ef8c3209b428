#include "driver/explain.h"

#include <bit>
#include <set>

#include "jit/forward_jit.h"
#include "kernel/kernel_call.h"

namespace fxjit::inline v0::driver {

KernelReport report_kernel(const ShapeEnv& env, const kernel::KernelCall& call, const jit::KernelHandle& handle) {
  KernelReport r;
  r.name = std::string(call.qualified_name());
  r.sources = call.sources;
  r.scopes = call.scopes;
  for (const kernel::Buffer& b : call.kernel.buffers) {
    int64_t elements = 1;
    for (size_t axis = 0; axis < call.extents.size(); ++axis)
      if (b.strides[axis] != kernel::StrideClass::Zero) elements *= env.hint(call.extents[axis]);
    r.bytes += elements * static_cast<int64_t>(size_of(b.dtype));
  }
  r.cached = handle.was_cached;
  r.from_disk = handle.from_disk;
  r.milliseconds = handle.was_cached ? 0 : handle.compile_ms;
  return r;
}

int64_t scope_of(const fx::Node& n) {
  const fx::Argument* scope = n.meta_if_any() ? n.meta_if_any()->find("scope") : nullptr;
  return scope ? scope->as_int() : -1;
}

namespace {

// "f32[s0, 16]", "float", "int = 3".
std::string input_text(const ShapeEnv& env, const codegen::ForwardInput& input) {
  if (input.kind == codegen::ForwardInput::Tensor) return to_string(env, *input.type);
  std::string text = input.is_float ? "float" : "int";
  if (!input.baked) return text;
  return text + " = " +
         (input.is_float ? std::to_string(std::bit_cast<double>(*input.baked))
                         : std::to_string(static_cast<int64_t>(*input.baked)));
}

}  // namespace

CallReport report_aten_call(const fx::Node& n, const std::vector<std::string>& notes, const std::string& no_library) {
  CallReport r{std::string(n.name()), std::string(n.callable().qualified_name()), no_library, scope_of(n)};
  for (const std::string& note : notes)
    if (note.starts_with(r.node + ":")) r.reason = note.substr(r.node.size() + 2);
  return r;
}

void describe_specialisation(const ShapeEnv& env, const codegen::ForwardInputs& inputs,
                             std::span<const std::string> names, SpecialisationReport* report) {
  for (size_t i = 0; i < inputs.inputs.size(); ++i) {
    if (inputs.inputs[i].derived) continue;
    std::string name = i < names.size() ? names[i] : "input " + std::to_string(i);
    report->inputs += (i ? ", " : "") + name + ": " + input_text(env, inputs.inputs[i]);
  }
  static constexpr const char* kRelations[] = {" == ", " != ", " < ", " <= "};
  for (const SymGuard& g : env.guards())
    report->guards.push_back(env.to_string(g.lhs) + kRelations[g.rel] + env.to_string(g.rhs));
}

std::string llvm_text(const fx::Graph& graph, const ShapeEnv& env, const codegen::ForwardInputs& inputs,
                      const codegen::SpecialisedPlan& plan, const jit::CpuTarget& target) {
  std::string text = jit::specialised_ir(graph, env, inputs, plan);
  std::set<std::string> printed;
  for (const codegen::SpecialisedStep& step : plan.steps) {
    const kernel::KernelCall* call = kernel::kernel_call_of(*step.node);
    if (!call || !printed.insert(kernel::print(call->kernel)).second) continue;
    text += "\n; ---- kernel " + std::string(call->qualified_name()) + " ----\n";
    text += jit::kernel_llvm(call->kernel, inputs.kernels.at(step.node).schedule, target);
  }
  return text;
}

}  // namespace fxjit::inline v0::driver
