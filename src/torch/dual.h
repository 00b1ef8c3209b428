// Tensors of forward-mode differentiation: they carry a tangent, of which dispatch keys do not tell.
#pragma once

#include <c10/core/TensorImpl.h>

namespace fxjit::inline v0::torch_ {

bool has_tangent(const c10::AutogradMetaInterface& meta);

inline bool is_dual(const c10::TensorImpl* t) {
  const c10::AutogradMetaInterface* meta = t->autograd_meta();
  return meta && has_tangent(*meta);
}

}  // namespace fxjit::inline v0::torch_
