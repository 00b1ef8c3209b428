#include <cstdlib>

#include "runtime/abi.h"

namespace {

constexpr size_t kAlign = 64;
constexpr size_t kFirst = size_t{64} << 10;  // a row of 16K floats; most rows never make it grow

struct Scratch {
  char* data = nullptr;
  size_t bytes = 0;
  ~Scratch() {
    std::free(data);
    data = nullptr;
    bytes = 0;
  }
};

}  // namespace

extern "C" void* fxjit_scratch(size_t bytes) {
  static thread_local Scratch scratch;
  if (bytes > scratch.bytes) {
    size_t grown = bytes < kFirst ? kFirst : (bytes + bytes / 2 + kAlign - 1) & ~(kAlign - 1);
    void* data = std::aligned_alloc(kAlign, grown);
    if (!data) return nullptr;
    std::free(scratch.data);
    scratch.data = static_cast<char*>(data);
    scratch.bytes = grown;
  }
  return scratch.data;
}
