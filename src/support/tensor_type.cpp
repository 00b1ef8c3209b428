#include "fxjit/tensor_type.h"

namespace fxjit::inline v0 {

std::vector<Dim> contiguous_strides(ShapeEnv& env, const std::vector<Dim>& sizes) {
  std::vector<Dim> strides(sizes.size());
  Dim running = env.constant(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = running;
    // ATen multiplies by max(size, 1): an empty tensor has the strides of a tensor of ones there.
    if (!env.is_const(sizes[i], 0)) running = env.mul(running, sizes[i]);
  }
  return strides;
}

bool is_contiguous(ShapeEnv& env, const TensorType& t) {
  for (Dim size : t.sizes)
    if (env.is_const(size, 0)) return true;
  Dim running = env.constant(1);
  for (size_t i = t.sizes.size(); i-- > 0;) {
    if (env.is_const(t.sizes[i], 1)) continue;
    if (t.strides[i] != running) return false;
    running = env.mul(running, t.sizes[i]);
  }
  return true;
}

std::string to_string(const ShapeEnv& env, const TensorType& t) {
  auto list = [&](const std::vector<Dim>& dims) {
    std::string s;
    for (Dim d : dims) s += (s.empty() ? "" : ", ") + env.to_string(d);
    return s;
  };
  return std::string(to_text(t.dtype)) + "[" + list(t.sizes) + "] (" + list(t.strides) + ")";
}

}  // namespace fxjit::inline v0
