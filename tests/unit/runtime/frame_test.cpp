#include "runtime/frame.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "runtime/fork.h"

namespace {

TEST(Frame, SlotsAreEmptyAndFramesAreReused) {
  fxjit_frame* a = fxjit_frame_acquire(3, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a->slots[i], nullptr);
  a->slots[1] = a;
  a->symbols[1] = 7;
  fxjit_frame* nested = fxjit_frame_acquire(3, 2);
  EXPECT_NE(nested, a);
  EXPECT_EQ(a->slots[1], a);
  EXPECT_EQ(a->symbols[1], 7);
  fxjit_frame_release(nested);
  fxjit_frame_release(a);
  fxjit_frame* again = fxjit_frame_acquire(5, 0);
  EXPECT_TRUE(again == a || again == nested);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(again->slots[i], nullptr);
  fxjit_frame_release(again);
}

TEST(Frame, ALargeFrameFollowsASmallOne) {
  fxjit_frame* small = fxjit_frame_acquire(1, 0);
  fxjit_frame_release(small);
  fxjit_frame* large = fxjit_frame_acquire(20000, 500);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(large->slots[i], nullptr);
  large->symbols[499] = 1;
  fxjit_frame_release(large);
}

TEST(Frame, ManyFramesAtOnce) {
  std::set<fxjit_frame*> frames;
  for (int i = 0; i < 50; ++i) frames.insert(fxjit_frame_acquire(10, 10));
  EXPECT_EQ(frames.size(), 50u);
  for (fxjit_frame* f : frames) fxjit_frame_release(f);
}

TEST(Frame, AFrameMayBeReleasedOnAnotherThread) {
  fxjit_frame* f = fxjit_frame_acquire(4, 4);
  ASSERT_EQ(fxjit_arena_reserve(f, 1000), FXJIT_OK);
  std::thread([f] { fxjit_frame_release(f); }).join();
}

TEST(Arena, GrowsAlignedAndIsKept) {
  fxjit_frame* f = fxjit_frame_acquire(0, 0);
  ASSERT_EQ(fxjit_arena_reserve(f, 1000), FXJIT_OK);
  EXPECT_GE(f->arena_bytes, 1000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(f->arena) % 64, 0u);
  char* first = f->arena;
  ASSERT_EQ(fxjit_arena_reserve(f, 500), FXJIT_OK);
  EXPECT_EQ(f->arena, first);
  ASSERT_EQ(fxjit_arena_reserve(f, 100000), FXJIT_OK);
  EXPECT_GE(f->arena_bytes, 100000u);
  std::memset(f->arena, 1, f->arena_bytes);
  size_t kept = f->arena_bytes;
  fxjit_frame_release(f);
  EXPECT_EQ(fxjit_frame_acquire(0, 0), f);
  EXPECT_EQ(f->arena_bytes, kept);
  fxjit_frame_release(f);
}

TEST(Arena, ALargeArenaDoesNotStayWithAnIdleFrame) {
  fxjit_frame* f = fxjit_frame_acquire(0, 0);
  ASSERT_EQ(fxjit_arena_reserve(f, size_t{8} << 20), FXJIT_OK);
  fxjit_frame_release(f);
  ASSERT_EQ(fxjit_frame_acquire(0, 0), f);
  EXPECT_EQ(f->arena_bytes, 0u);
  fxjit_frame_release(f);
}

TEST(Arena, WithoutMemoryTheStatusSaysSo) {
  fxjit_frame* f = fxjit_frame_acquire(0, 0);
  EXPECT_EQ(fxjit_arena_reserve(f, size_t{1} << 60), FXJIT_NO_MEMORY);
  EXPECT_EQ(f->error, nullptr);
  fxjit_frame_release(f);
}

TEST(Scratch, IsAlignedThreadLocalAndGrows) {
  void* a = fxjit_scratch(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(fxjit_scratch(50), a);
  void* b = fxjit_scratch(size_t{3} << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 64, 0u);
  std::memset(b, 1, size_t{3} << 20);
  std::thread([b] { EXPECT_NE(fxjit_scratch(64), b); }).join();
}

TEST(Scratch, WithoutMemoryThereIsNoneAndTheOldStays) {
  void* a = fxjit_scratch(100);
  EXPECT_EQ(fxjit_scratch(size_t{1} << 60), nullptr);
  EXPECT_EQ(fxjit_scratch(100), a);
}

struct Seen {
  int calls = 0;
  int64_t units = 0;
};

void count(int64_t begin, int64_t end, void* ctx) {
  auto* seen = reinterpret_cast<Seen*>(const_cast<void*>(*static_cast<fxjit_launch*>(ctx)->pointers));
  seen->calls += 1;
  seen->units += end - begin;
}

// Splits like a host with two threads would, on one.
void halves(int64_t begin, int64_t end, int64_t, fxjit_kernel fn, void* ctx) {
  int64_t middle = begin + (end - begin) / 2;
  fn(begin, middle, ctx);
  fn(middle, end, ctx);
}

Seen launch(int64_t units, int64_t grain, int32_t threads, fxjit_parallel_for parallel = &halves) {
  Seen seen;
  void* pointer = &seen;
  fxjit_launch l{&pointer, nullptr, nullptr, nullptr, 0, FXJIT_OK};
  fxjit_frame* f = fxjit_frame_acquire(0, 0);
  f->parallel = parallel;
  f->threads = threads;
  fxjit_launch_kernel(f, &count, &l, units, grain);
  fxjit_frame_release(f);
  return seen;
}

TEST(Launch, SmallWorkAndOneThreadRunInline) {
  EXPECT_EQ(launch(100, 10, 2).calls, 2);
  EXPECT_EQ(launch(100, 10, 2).units, 100);
  EXPECT_EQ(launch(10, 10, 2).calls, 1);
  EXPECT_EQ(launch(100, 10, 1).calls, 1);
  EXPECT_EQ(launch(0, 10, 2).calls, 0);
  EXPECT_EQ(launch(100, 0, 2).units, 100);
  EXPECT_EQ(launch(100, 10, 2, &fxjit_serial_for).calls, 1);
}

TEST(Launch, AForkChildRunsInline) {
  EXPECT_EQ(fxjit_in_fork_child(), 0);
  pid_t child = fork();
  if (child == 0) _exit(fxjit_in_fork_child() && launch(100, 10, 2).calls == 1 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fxjit_in_fork_child(), 0);
}

TEST(Symbols, NameWhatGeneratedCodeCalls) {
  size_t n = 0;
  const fxjit_symbol* symbols = fxjit_runtime_symbols(&n);
  std::set<std::string> names;
  for (size_t i = 0; i < n; ++i) {
    EXPECT_NE(symbols[i].address, nullptr);
    names.insert(symbols[i].name);
  }
  for (const char* name : {"fxjit_scratch", "fxjit_launch_kernel", "fxjit_arena_reserve", "memcpy", "memset"})
    EXPECT_TRUE(names.count(name)) << name;
}

}  // namespace
