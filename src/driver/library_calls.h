// Which nodes a library runs instead of ATen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fxjit/fx/node.h"
#include "torch/aten_call.h"
#include "torch/host_program.h"

namespace fxjit::inline v0::driver {

// The call of a library for this node, or null; then *reason says why not, where a library knows the operator at all.
std::unique_ptr<torch_::HostCall> library_call(const fx::Node& node, const torch_::Binder& binder,
                                               const std::vector<int32_t>& results, std::string* reason);

}  // namespace fxjit::inline v0::driver
