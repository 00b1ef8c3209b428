// The two CPU targets that kernels are emitted for. The names are those of jit/cpu_target.h.
#pragma once

#include <string_view>

#include "codegen/target_hooks.h"

namespace fxjit::inline v0::codegen {

const TargetHooks& avx512_hooks();
const TargetHooks& avx2_hooks();

// "avx512" or "avx2"; nullptr for another name.
const TargetHooks* find_cpu_hooks(std::string_view name);

}  // namespace fxjit::inline v0::codegen
