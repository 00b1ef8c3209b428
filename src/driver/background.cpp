#include "driver/background.h"

#include <pthread.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>

#include "jit/cpu_jit.h"

namespace fxjit::inline v0::driver {
namespace {

using Job = std::function<void()>;

// Whoever holds the mutex holds a ForkGuard too, so that no child inherits it in use; waiting goes without either.
class Worker {
 public:
  void add(Job job) {
    {
      jit::ForkGuard guard;
      std::lock_guard lock(mutex_);
      if (stopped_) return;
      if (!thread_.joinable()) thread_ = std::thread([this] { work(); });  // may throw: then no job is counted
      jobs_.push_back(std::move(job));
      ++added_;
    }
    waiting_.release();
  }

  void drain() {
    const uint64_t target = added_;
    for (uint64_t done = done_; done < target && !stopped_; done = done_) done_.wait(done);
  }

  void stop() {
    {
      jit::ForkGuard guard;
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    waiting_.release();
    if (thread_.joinable()) thread_.join();
    jobs_.clear();
    done_ = added_.load();
    done_.notify_all();
  }

 private:
  void work() {
    while (true) {
      waiting_.acquire();
      Job job;
      {
        jit::ForkGuard guard;
        std::lock_guard lock(mutex_);
        if (stopped_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job();
      job = nullptr;  // what it holds is gone before it counts as done
      ++done_;
      done_.notify_all();
    }
  }

  std::mutex mutex_;  // jobs_, thread_
  std::deque<Job> jobs_;
  std::thread thread_;
  std::counting_semaphore<> waiting_{0};
  std::atomic<uint64_t> added_{0}, done_{0};
  std::atomic<bool> stopped_{false};
};

std::atomic<Worker*> the_worker{nullptr};

Worker* worker_if_any() { return the_worker.load(std::memory_order_acquire); }

Worker& worker() {
  static const bool once = [] {
    // The child has no such thread: it leaves the parent's behind and makes one of its own.
    ::pthread_atfork(nullptr, nullptr, [] { the_worker.store(nullptr); });
    return true;
  }();
  static struct AtExit {
    ~AtExit() { stop_background(); }
  } at_exit;
  (void)once;
  if (Worker* w = worker_if_any()) return *w;
  auto made = std::make_unique<Worker>();
  Worker* none = nullptr;
  if (the_worker.compare_exchange_strong(none, made.get())) return *made.release();
  return *none;
}

}  // namespace

void run_in_background(Job job) { worker().add(std::move(job)); }

void drain_background() {
  if (Worker* w = worker_if_any()) w->drain();
}

void stop_background() {
  if (Worker* w = worker_if_any()) w->stop();
}

}  // namespace fxjit::inline v0::driver
