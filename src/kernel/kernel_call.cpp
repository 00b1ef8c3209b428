#include "kernel/kernel_call.h"

#include "support/errors.h"

namespace fxjit::inline v0::kernel {

bool KernelCall::writes_operand() const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (kernel.buffers[i].output && buffers[i].operand >= 0) return true;
  }
  return false;
}

bool KernelCall::is_impure(const fx::Argument&, const fx::Argument&, bool) const { return writes_operand(); }

void verify(const KernelCall& call) {
  const std::string name(call.qualified_name());
  const size_t axes = call.kernel.axes.size();
  FXJIT_CHECK(call.extents.size() == axes, name + ": one extent per axis");
  FXJIT_CHECK(call.buffers.size() == call.kernel.buffers.size(), name + ": one binding per buffer");
  FXJIT_CHECK(call.scalars.size() == call.kernel.scalars.size(), name + ": one binding per scalar");
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const BufferBinding& b = call.buffers[i];
    const std::string place = name + ": buffer " + std::to_string(i);
    FXJIT_CHECK(b.strides.size() == axes, place + " has one stride per axis");
    FXJIT_CHECK((b.operand < 0) != (b.result < 0), place + " is an operand or a result");
    FXJIT_CHECK(b.result < 0 || call.kernel.buffers[i].output, place + ": a result is an output");
    FXJIT_CHECK(b.result < static_cast<int32_t>(call.results.size()), place + " names a result");
  }
}

}  // namespace fxjit::inline v0::kernel
