// The parts of a report that a compilation fills in, and the text of its code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/forward/specialised_plan.h"
#include "driver/report.h"
#include "jit/cpu_target.h"
#include "jit/kernel_cache.h"

namespace fxjit::inline v0::driver {

KernelReport report_kernel(const ShapeEnv& env, const kernel::KernelCall& call, const jit::KernelHandle& handle);
// `notes` are the passes' reasons; one that begins with the node's name is the call's.
// The recorder's scope that a typed node comes from; -1 without one.
int64_t scope_of(const fx::Node& n);
CallReport report_aten_call(const fx::Node& n, const std::vector<std::string>& notes, const std::string& no_library);
void describe_specialisation(const ShapeEnv& env, const codegen::ForwardInputs& inputs,
                             std::span<const std::string> names, SpecialisationReport* report);
// `forward`, then each kernel, under headings.
std::string llvm_text(const fx::Graph& graph, const ShapeEnv& env, const codegen::ForwardInputs& inputs,
                      const codegen::SpecialisedPlan& plan, const jit::CpuTarget& target);

}  // namespace fxjit::inline v0::driver
