// Numbers of the host in a typed graph: placeholders without a tensor type, which stand for an int or a float that
// `forward` is given at each call.
#pragma once

#include <cstdint>
#include <optional>

#include "fxjit/dtype.h"
#include "fxjit/fx/node.h"

namespace fxjit::inline v0::ops {

struct HostNumber {
  int32_t input = -1;            // index among the inputs of `forward`
  DType dtype = DType::Float64;  // Float64 or Int64
};

// What the node stands for; empty for every other node.
std::optional<HostNumber> host_number(const fx::Node& n);
void mark_host_number(fx::Node* placeholder, HostNumber number);

}  // namespace fxjit::inline v0::ops
