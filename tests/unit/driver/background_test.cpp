// The thread of the option `background`: order, forks, the end of the process.
#include "driver/background.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "fxjit/compile.h"
#include "helpers.h"

namespace fxjit::driver {
namespace {

TEST(Background, JobsRunInOrderOnOneOtherThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 50; ++i) {
    run_in_background([&, i] { order.push_back(i), threads.push_back(std::this_thread::get_id()); });
  }
  drain_background();
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
    EXPECT_EQ(threads[static_cast<size_t>(i)], threads.front());
  }
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

TEST(Background, WhatAJobHoldsIsGoneWhenItIsDone) {
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> seen = held;
  run_in_background([held = std::move(held)] {});
  drain_background();
  EXPECT_TRUE(seen.expired());
}

TEST(Background, ManyThreadsGiveJobs) {
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) run_in_background([&] { ++ran; });
    });
  }
  for (std::thread& t : threads) t.join();
  drain_background();
  EXPECT_EQ(ran, 400);
}

// The exit status of what `child` returns in a fork, -1 if it does not end by itself within 20 s.
template <class F>
int in_fork(F child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = -1;
  for (int i = 0; i < 2000; ++i) {
    if (::waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ::usleep(10'000);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return -1;
}

TEST(Background, AForkedChildWaitsForNothingAndStartsItsOwn) {
  std::atomic<bool> go{false};
  run_in_background([&] { go.wait(false); });  // the parent's thread is at work during the fork
  const int status = in_fork([] {
    drain_background();
    int ran = 0;
    run_in_background([&] { ran = 1; });
    drain_background();
    stop_background();
    return ran == 1 ? 7 : 1;
  });
  go = true;
  go.notify_all();
  drain_background();
  EXPECT_EQ(status, 7);
}

TEST(Background, StoppedMeansThatTheRunningJobEndsAndNoOtherBegins) {
  const int status = in_fork([] {
    std::atomic<int> ran{0};
    std::atomic<bool> started{false};
    run_in_background([&] {
      started = true;
      started.notify_all();
      ::usleep(20'000);
      ++ran;
    });
    started.wait(false);
    run_in_background([&] { ran += 10; });
    stop_background();
    run_in_background([&] { ran += 10; });
    drain_background();
    return ran == 1 ? 7 : 1;
  });
  EXPECT_EQ(status, 7);
}

// Calls of a compiled function whose compilation waits for `go`.
TEST(Background, NoCallWaitsAndNoneIsRecordedTwice) {
  c10::NoGradGuard no_grad;
  Options options;
  options.background = true;
  auto f = compile([](at::Tensor x) { return x.sigmoid() * 2; }, options);
  std::atomic<bool> go{false};
  run_in_background([&] { go.wait(false); });
  const at::Tensor x = at::arange(6, at::kFloat), other = at::arange(9, at::kFloat).view({3, 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(testing::same(f(x), x.sigmoid() * 2));
  EXPECT_TRUE(testing::same(f(other), other.sigmoid() * 2));
  go = true;
  go.notify_all();
  Report r = f.explain();  // waits
  EXPECT_EQ(r.recorded_calls, 1);
  EXPECT_EQ(r.generic_calls, 3);
  EXPECT_TRUE(r.fallbacks.empty());
  ASSERT_EQ(r.specialisations.size(), 1u);
  EXPECT_TRUE(testing::same(f(x), x.sigmoid() * 2));
  EXPECT_EQ(f.explain().specialisations[0].hits, 1);
  f(other);
  EXPECT_EQ(f.explain().specialisations.size(), 2u);
}

TEST(Background, AFailureIsAReasonAndNothingIsTriedAgain) {
  c10::NoGradGuard no_grad;
  Options options;
  options.background = true;
  options.verify = true;  // raises elsewhere
  options.fault = "kernels";
  auto f = compile([](at::Tensor x) { return x.sigmoid() * 2; }, options);
  const at::Tensor x = at::arange(6, at::kFloat);
  f(x);
  ASSERT_EQ(f.explain().fallbacks.size(), 1u);
  EXPECT_NE(f.explain().fallbacks[0].reason.find("a fault on purpose"), std::string::npos);
  EXPECT_TRUE(testing::same(f(x), x.sigmoid() * 2));
  EXPECT_EQ(f.explain().recorded_calls, 1);
}

}  // namespace
}  // namespace fxjit::driver
