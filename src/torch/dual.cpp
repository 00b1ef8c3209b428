#include "torch/dual.h"

#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace fxjit::inline v0::torch_ {

// AutogradMeta is the one implementation of the interface. Asked by its own virtual function it would take a lock.
bool has_tangent(const c10::AutogradMetaInterface& meta) {
  const auto& tangents = static_cast<const torch::autograd::AutogradMeta&>(meta).fw_grad_;
  return tangents && !tangents->empty();
}

}  // namespace fxjit::inline v0::torch_
