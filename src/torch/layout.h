// The offsets that generated code reads tensors by, checked against the torch that is loaded.
#pragma once

#include <string>

#include "codegen/forward/tensor_layout.h"

namespace fxjit::inline v0::torch_ {

struct LayoutCheck {
  codegen::TensorLayout layout;
  std::string problem;  // empty: every field of real tensors was found where `layout` says
};

// Computed at first use, then constant. With a problem nothing is specialised: every call takes the generic form, and
// the problem is the reason that explain() gives.
const LayoutCheck& tensor_layout();

// The check itself, for any layout; what tensor_layout() calls with the real one.
std::string check_layout(const codegen::TensorLayout& layout);

}  // namespace fxjit::inline v0::torch_
