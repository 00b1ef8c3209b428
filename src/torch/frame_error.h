// The exception that travels in a frame past generated code, which cannot be unwound.
#pragma once

#include <exception>

#include "runtime/abi.h"

namespace fxjit::inline v0::torch_ {

// In a catch block: keeps the exception in the frame (an earlier one stays) and returns FXJIT_ERROR.
inline fxjit_status catch_into(fxjit_frame* frame) {
  if (!frame->error) frame->error = new std::exception_ptr(std::current_exception());
  return FXJIT_ERROR;
}

// Takes the frame's exception out; null if there is none.
inline std::exception_ptr take_error(fxjit_frame* frame) {
  auto* held = static_cast<std::exception_ptr*>(frame->error);
  frame->error = nullptr;
  std::exception_ptr e = held ? *held : nullptr;
  delete held;
  return e;
}

}  // namespace fxjit::inline v0::torch_
