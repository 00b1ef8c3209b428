// From the emitters of `forward` to code that runs: links callees with the host's table, the kernels and the runtime.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codegen/forward/forward_plan.h"
#include "codegen/forward/specialised_plan.h"
#include "fxjit/api.h"
#include "jit/cpu_jit.h"
#include "runtime/abi.h"

namespace fxjit::inline v0::jit {

// What the code calls on its host's side.
struct ForwardHost {
  const fxjit_table* table = nullptr;
  bool (*requires_grad)(void* tensor) = nullptr;  // specialised form only
};

template <class Fn>
struct CompiledForward {
  Fn function = nullptr;
  std::shared_ptr<const CompiledCode> code;
};

// `kernels`: by the emitter's callee index, 2 * step and 2 * step + 1; null where there is none.
FXJIT_API CompiledForward<fxjit_specialised> compile_specialised(const fx::Graph& typed, const ShapeEnv& env,
                                                                 const codegen::ForwardInputs& inputs,
                                                                 const codegen::SpecialisedPlan& plan,
                                                                 std::span<const fxjit_kernel> kernels,
                                                                 const ForwardHost& host, const CpuTarget& target);
FXJIT_API CompiledForward<fxjit_generic> compile_generic(const fx::Graph& graph, const codegen::ForwardPlan& plan,
                                                         const ForwardHost& host, const CpuTarget& target);

// The LLVM IR of both, with the graph's nodes as comments; made when somebody asks.
FXJIT_API std::string specialised_ir(const fx::Graph& typed, const ShapeEnv& env, const codegen::ForwardInputs& inputs,
                                     const codegen::SpecialisedPlan& plan);
FXJIT_API std::string generic_ir(const fx::Graph& graph, const codegen::ForwardPlan& plan);

}  // namespace fxjit::inline v0::jit
