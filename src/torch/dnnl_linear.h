// aten::linear in float32 through oneDNN.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fxjit/api.h"
#include "fxjit/fx/node.h"
#include "fxjit/tensor_type.h"
#include "support/result.h"
#include "torch/aten_call.h"
#include "torch/host_program.h"

namespace fxjit::inline v0::torch_ {

// The library call for a node whose target is named "aten::linear". Fails with the reason where oneDNN cannot be opened
// or the argument types rule it out for good. At each call it looks at what it is given and lets ATen run what the
// library has no code for: other types, strides, empty tensors, autocast, lowered matmul precision, gradients, a fork
// child. The weight is packed at its first call; identity, address, version and a sample of 64 elements are compared at
// each call, and the packed form is rebuilt when one differs. Partial writes through .data may go unnoticed.
Result<std::unique_ptr<HostCall>> bind_dnnl_linear(const fx::Node& node, const Binder& binder,
                                                   const std::vector<int32_t>& results);

// Where to look for oneDNN before the place configured at build time and the system's; a file name. Without effect once
// the library was looked for.
FXJIT_API void prefer_dnnl(const std::string& path);

// A hash of up to 64 elements spread evenly over `count` floats, the first and the last among them.
uint64_t sample_checksum(const float* data, int64_t count);

}  // namespace fxjit::inline v0::torch_
