#include "allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local fxjit::fx::test::Allocations total;
}

fxjit::fx::test::Allocations fxjit::fx::test::allocations() { return total; }

// The forms of new and delete that are not replaced call these.
void* operator new(std::size_t bytes) {
  ++total.count;
  total.bytes += bytes;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
