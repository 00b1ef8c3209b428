#include "codegen/forward/kernel_cost.h"

#include <algorithm>

#include "codegen/schedule.h"

namespace fxjit::inline v0::codegen {
namespace {

// A vector instruction works on 16 floats; about 1.5 of them a cycle at 3 GHz.
constexpr double kInstruction = 1 / (16 * 1.5 * 3);
constexpr double kByte = 0.02;  // 50 GB/s: out of the second cache level

}  // namespace

double estimate_ns_per_element(const kernel::Kernel& k) {
  double ns = kInstruction;
  for (const kernel::Buffer& b : k.buffers) {
    const bool broadcast = b.strides.empty() || b.strides.back() == kernel::StrideClass::Zero;
    const bool strided = !b.strides.empty() && b.strides.back() == kernel::StrideClass::Any;
    // A strided element brings a line, or a gather.
    if (!broadcast) ns += kByte * static_cast<double>(strided ? 32 : size_of(b.dtype));
  }
  for (const kernel::Expr& e : k.exprs) {
    const double width = std::max(1.0, static_cast<double>(size_of(e.dtype)) / 4);
    ns += kInstruction * width * cost_of(k, e);
  }
  return ns;
}

}  // namespace fxjit::inline v0::codegen
