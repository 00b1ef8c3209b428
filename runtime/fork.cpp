#include "runtime/fork.h"

#include <pthread.h>

#include <atomic>

namespace {

// Process state, not configuration: set once, by the fork handler, in the child.
std::atomic<int> forked{0};

// Registered when the library is loaded: a handler registered at the first launch would miss a fork before it, in whose
// child the host's thread pool is as dead.
[[gnu::constructor]] void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { forked.store(1, std::memory_order_relaxed); });
}

}  // namespace

extern "C" int fxjit_in_fork_child(void) { return forked.load(std::memory_order_relaxed); }
