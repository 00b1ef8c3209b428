#include <pthread.h>

#include <new>
#include <shared_mutex>

#include "jit/cpu_jit.h"

namespace fxjit::inline v0::jit {
namespace {

// A reader-preferring lock (glibc's default), so that guards may be nested while a fork is waiting.
struct ForkLock {
  std::shared_mutex mutex;

  ForkLock() {
    ::pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
                     // The child's only thread is not the one that the lock names as its writer: a fresh one.
                     [] { new (&instance().mutex) std::shared_mutex; });
  }
  static ForkLock& instance() {
    static ForkLock& lock = *new ForkLock;  // leaked: handlers run until the process is gone
    return lock;
  }
};

}  // namespace

ForkGuard::ForkGuard() { ForkLock::instance().mutex.lock_shared(); }
ForkGuard::~ForkGuard() { ForkLock::instance().mutex.unlock_shared(); }

}  // namespace fxjit::inline v0::jit
