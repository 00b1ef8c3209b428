#include "tests/unit/allocations.h"

#include <cstdlib>
#include <new>

namespace fxjit::test {

static thread_local Allocations so_far;

Allocations allocations() { return so_far; }
static void count_allocation(size_t bytes) {
  ++so_far.count;
  so_far.bytes += bytes;
}

}  // namespace fxjit::test

// The forms of new and delete that are not replaced call these. Not inlined: a compiler that sees through one of a pair
// takes it for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  fxjit::test::count_allocation(bytes);
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
// Under a sanitizer this form is its own, which the delete below does not match.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  fxjit::test::count_allocation(bytes);
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  fxjit::test::count_allocation(bytes);
  const auto a = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
