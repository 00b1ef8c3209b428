// A kernel to compile, and its launch.
#pragma once

#include <bit>
#include <vector>

#include "jit/kernel_cache.h"

namespace fxjit::jit {

// out[i] = x[i] * c over one axis of floats.
inline kernel::Kernel scaled_by(double c) {
  using kernel::StrideClass;
  kernel::Kernel k;
  k.axes = {{}};
  k.buffers = {{DType::Float32, false, {StrideClass::Unit}}, {DType::Float32, true, {StrideClass::Unit}}};
  kernel::Expr load, factor, product;
  load.kind = kernel::ExprKind::Load;
  load.index = 0;
  factor.kind = kernel::ExprKind::Const;
  factor.bits = std::bit_cast<uint64_t>(c);
  product.kind = kernel::ExprKind::Op;
  product.op = ops::OpId::mul;
  product.args[0] = 0;
  product.args[1] = 1;
  k.exprs = {load, factor, product};
  k.stores = {{1, 2}};
  return k;
}

inline std::vector<float> run(const KernelHandle& h, const codegen::Schedule& s, const kernel::Kernel& k,
                              std::vector<float> x) {
  std::vector<float> out(x.size());
  void* pointers[] = {x.data(), out.data()};
  const int64_t extents[] = {static_cast<int64_t>(x.size())};
  const int64_t strides[] = {1, 1};
  fxjit_launch launch{pointers, extents, strides, nullptr, codegen::blocks_per_outer(k, s, extents), FXJIT_OK};
  h.function(0, codegen::unit_count(k, s, extents), &launch);
  return out;
}

}  // namespace fxjit::jit
