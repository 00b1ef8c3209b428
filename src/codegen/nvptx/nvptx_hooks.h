// The GPU target: the same kernel text, one element a thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/target_hooks.h"
#include "kernel/kernel.h"

namespace fxjit::inline v0::codegen {

// One parameter of a kernel on the GPU; all are 8 bytes.
struct GpuParameter {
  enum Kind : uint8_t { Units, Field } kind = Units;
  LaunchField field = LaunchField::Blocks;
  int index = 0;  // as in TargetHooks::launch_field
};

// The parameters of `k`, in order: units, blocks, pointers, extents, strides of class Any, scalars.
std::vector<GpuParameter> gpu_parameters(const kernel::Kernel& k);

// Units are spread over blockIdx.x, the elements of one over threadIdx.x: any one-dimensional grid computes all. `sm`
// is 80 or 90, InternalError otherwise. The hooks are for kernels whose parameters are those of `k`.
std::unique_ptr<TargetHooks> make_nvptx_hooks(int sm, const kernel::Kernel& k);

}  // namespace fxjit::inline v0::codegen
