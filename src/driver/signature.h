// A word for "inputs like these": element types, ranks, key sets, sizes and strides. Failed compilations are remembered
// by it, so that a program that cannot be compiled is not recorded at every call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace fxjit::inline v0::driver {

inline uint64_t signature_of(std::span<const at::Tensor> inputs) {
  uint64_t h = 0xcbf29ce484222325ull;
  auto mix = [&h](uint64_t v) { h = (h ^ v) * 0x100000001b3ull + (h >> 29); };
  for (const at::Tensor& t : inputs) {
    mix(static_cast<uint64_t>(t.scalar_type()));
    mix(t.key_set().raw_repr());
    mix(static_cast<uint64_t>(t.dim()));
    for (int64_t s : t.sizes()) mix(static_cast<uint64_t>(s));
    for (int64_t s : t.strides()) mix(static_cast<uint64_t>(s));
  }
  return h;
}

}  // namespace fxjit::inline v0::driver
