// What the test binary allocates, counted: work that grows too fast shows here without a clock.
#pragma once

#include <cstdint>

namespace fxjit::test {

struct Allocations {
  uint64_t count = 0, bytes = 0;
};

// Of this thread, since it began.
Allocations allocations();

template <class F>
Allocations allocations_of(F&& action) {
  const Allocations before = allocations();
  action();
  const Allocations after = allocations();
  return {after.count - before.count, after.bytes - before.bytes};
}

}  // namespace fxjit::test
