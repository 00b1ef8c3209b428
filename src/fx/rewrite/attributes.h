// Attributes that move from one module to another.
#pragma once

#include "fxjit/fx/module.h"

namespace fxjit::inline v0::fx {

// As what torch.fx registers a value. Tensors that are no parameters become buffers.
inline AttributeKind registered_kind(const Object& value) {
  switch (value.object_kind()) {
    case ObjectKind::Module:
      return AttributeKind::Module;
    case ObjectKind::Parameter:
      return AttributeKind::Parameter;
    default:
      return AttributeKind::Buffer;
  }
}

}  // namespace fxjit::inline v0::fx
