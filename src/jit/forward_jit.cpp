#include "jit/forward_jit.h"

#include "codegen/forward/generic.h"
#include "codegen/forward/host_module.h"
#include "codegen/forward/specialised.h"
#include "support/errors.h"

namespace fxjit::inline v0::jit {
namespace {

using codegen::Callee;
using codegen::CalleeKind;

const void* address_of(const Callee& c, std::span<const fxjit_kernel> kernels, const ForwardHost& host) {
  switch (c.kind) {
    case CalleeKind::Call:
      return reinterpret_cast<const void*>(host.table->call);
    case CalleeKind::Release:
      return reinterpret_cast<const void*>(host.table->release);
    case CalleeKind::Kernel:
      FXJIT_CHECK(static_cast<size_t>(c.index) < kernels.size() && kernels[static_cast<size_t>(c.index)],
                  "no kernel for callee ", c.symbol);
      return reinterpret_cast<const void*>(kernels[static_cast<size_t>(c.index)]);
    case CalleeKind::RequiresGrad:
      return reinterpret_cast<const void*>(host.requires_grad);
    case CalleeKind::Runtime:
      break;
  }
  return nullptr;
}

template <class Fn>
CompiledForward<Fn> link(codegen::HostModule module, std::span<const fxjit_kernel> kernels, const ForwardHost& host,
                         const CpuTarget& target) {
  std::vector<NamedAddress> extra;
  for (const Callee& c : module.callees())
    if (c.kind != CalleeKind::Runtime) extra.push_back({c.symbol, address_of(c, kernels, host)});
  CompiledForward<Fn> out;
  out.code = CpuJit::process().add(module.take_module(), Profile::Host, target, extra);
  out.function = out.code->template symbol<Fn>("forward");
  return out;
}

}  // namespace

CompiledForward<fxjit_specialised> compile_specialised(const fx::Graph& typed, const ShapeEnv& env,
                                                       const codegen::ForwardInputs& inputs,
                                                       const codegen::SpecialisedPlan& plan,
                                                       std::span<const fxjit_kernel> kernels, const ForwardHost& host,
                                                       const CpuTarget& target) {
  ForkGuard guard;
  return link<fxjit_specialised>(codegen::emit_specialised(typed, env, inputs, plan, false), kernels, host, target);
}

CompiledForward<fxjit_generic> compile_generic(const fx::Graph& graph, const codegen::ForwardPlan& plan,
                                               const ForwardHost& host, const CpuTarget& target) {
  ForkGuard guard;
  return link<fxjit_generic>(codegen::emit_generic(graph, plan, false), {}, host, target);
}

std::string specialised_ir(const fx::Graph& typed, const ShapeEnv& env, const codegen::ForwardInputs& inputs,
                           const codegen::SpecialisedPlan& plan) {
  ForkGuard guard;
  return codegen::emit_specialised(typed, env, inputs, plan).text();
}

std::string generic_ir(const fx::Graph& graph, const codegen::ForwardPlan& plan) {
  ForkGuard guard;
  return codegen::emit_generic(graph, plan).text();
}

}  // namespace fxjit::inline v0::jit
