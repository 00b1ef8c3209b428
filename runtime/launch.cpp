#include <cstring>

#include "runtime/abi.h"
#include "runtime/fork.h"

extern "C" {

void fxjit_serial_for(int64_t begin, int64_t end, int64_t, fxjit_kernel fn, void* ctx) {
  if (begin < end) fn(begin, end, ctx);
}

void fxjit_launch_kernel(fxjit_frame* frame, fxjit_kernel fn, fxjit_launch* launch, int64_t units, int64_t grain) {
  if (units <= 0) return;
  if (units <= grain || frame->threads <= 1 || !frame->parallel || fxjit_in_fork_child()) {
    fn(0, units, launch);
  } else {
    frame->parallel(0, units, grain < 1 ? 1 : grain, fn, launch);
  }
}

const fxjit_symbol* fxjit_runtime_symbols(size_t* count) {
  static const fxjit_symbol symbols[] = {
      {"fxjit_arena_reserve", reinterpret_cast<void*>(&fxjit_arena_reserve)},
      {"fxjit_scratch", reinterpret_cast<void*>(&fxjit_scratch)},
      {"fxjit_launch_kernel", reinterpret_cast<void*>(&fxjit_launch_kernel)},
      {"fxjit_serial_for", reinterpret_cast<void*>(&fxjit_serial_for)},
      {"memcpy", reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, size_t)>(&std::memcpy))},
      {"memset", reinterpret_cast<void*>(static_cast<void* (*)(void*, int, size_t)>(&std::memset))},
  };
  *count = sizeof(symbols) / sizeof(symbols[0]);
  return symbols;
}

}  // extern "C"
