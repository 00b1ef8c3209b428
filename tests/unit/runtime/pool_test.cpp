#include "runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

fxjit_pool_statistics statistics() {
  fxjit_pool_statistics s;
  fxjit_pool_get_statistics(&s);
  return s;
}

class Pool : public ::testing::Test {
 protected:
  void SetUp() override {
    limit_ = statistics().limit_bytes;
    fxjit_pool_trim(0);
  }
  void TearDown() override { fxjit_pool_set_limit(limit_); }
  size_t limit_ = 0;
};

TEST_F(Pool, SizeClassesCoverTheRequestWithinAQuarter) {
  EXPECT_EQ(fxjit_block_capacity(0), 64u);
  EXPECT_EQ(fxjit_block_capacity(64), 64u);
  EXPECT_EQ(fxjit_block_capacity(65), 80u);
  EXPECT_EQ(fxjit_block_capacity(128), 128u);
  for (size_t bytes = 65; bytes < (size_t{1} << 36); bytes += bytes / 7 + 1) {
    size_t capacity = fxjit_block_capacity(bytes);
    EXPECT_GE(capacity, bytes);
    EXPECT_LE(capacity, bytes + bytes / 4 + 16) << bytes;
    EXPECT_EQ(fxjit_block_capacity(capacity), capacity);
    EXPECT_EQ(fxjit_block_capacity(capacity + 1) > capacity, true);
  }
}

TEST_F(Pool, BlocksAreAligned) {
  for (size_t bytes : {1u, 80u, 4096u, 100000u, 3u << 20}) {
    fxjit_block* b = fxjit_block_get(bytes);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data) % 64, 0u);
    if (b->capacity >= FXJIT_HUGE_BLOCK) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data) % FXJIT_HUGE_BLOCK, 0u);
    }
    std::memset(b->data, 0x5a, b->capacity);
    fxjit_block_put(b);
  }
}

TEST_F(Pool, ABlockComesBackForTheSameSize) {
  for (size_t bytes : {100u, 1u << 20, 5u << 20}) {
    fxjit_block* a = fxjit_block_get(bytes);
    void* data = a->data;
    fxjit_block_put(a);
    fxjit_block* b = fxjit_block_get(bytes - 1);
    EXPECT_EQ(b->data, data);
    fxjit_block_put(b);
  }
}

TEST_F(Pool, TheLimitFreesTheOldestFirst) {
  fxjit_pool_set_limit(size_t{5} << 20);
  fxjit_block* a = fxjit_block_get(size_t{2} << 20);
  fxjit_block* b = fxjit_block_get(size_t{3} << 20);
  fxjit_block* c = fxjit_block_get(size_t{1} << 20);
  void* kept = c->data;
  uint64_t live = statistics().live_bytes;
  fxjit_block_put(a);
  fxjit_block_put(b);
  EXPECT_EQ(statistics().cached_bytes, uint64_t{5} << 20);
  fxjit_block_put(c);  // 6 MiB would be cached: a goes
  EXPECT_EQ(statistics().cached_bytes, uint64_t{4} << 20);
  EXPECT_EQ(statistics().live_bytes, live - (uint64_t{6} << 20));
  uint64_t reused = statistics().reused;
  a = fxjit_block_get(size_t{2} << 20);
  EXPECT_EQ(statistics().reused, reused);  // a fresh one
  c = fxjit_block_get(size_t{1} << 20);
  EXPECT_EQ(c->data, kept);
  fxjit_block_put(a);
  fxjit_block_put(c);
}

TEST_F(Pool, TrimReturnsWhatIsCached) {
  fxjit_block* a = fxjit_block_get(size_t{2} << 20);
  fxjit_block_put(a);
  fxjit_block* small = fxjit_block_get(100);
  fxjit_block_put(small);
  EXPECT_GE(fxjit_pool_trim(0), (size_t{2} << 20) + 112);
  EXPECT_EQ(statistics().cached_bytes, 0u);
}

TEST_F(Pool, ImpossibleRequestsAreRefused) {
  EXPECT_EQ(fxjit_block_get(size_t{1} << 60), nullptr);
  EXPECT_EQ(fxjit_block_get(SIZE_MAX), nullptr);
}

TEST_F(Pool, ThreadsTakeAndReturnEachOthersBlocks) {
  uint64_t live = statistics().live_bytes;
  std::vector<fxjit_block*> blocks(2000);
  auto sizes = [](size_t i) { return size_t{64} << (i % 16); };
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = fxjit_block_get(sizes(i));
    std::memset(blocks[i]->data, static_cast<int>(i), 64);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = static_cast<size_t>(t); i < blocks.size(); i += 4) {
        EXPECT_EQ(static_cast<uint8_t*>(blocks[i]->data)[63], static_cast<uint8_t>(i));
        fxjit_block_put(blocks[i]);
        blocks[i] = fxjit_block_get(sizes(i * 7));
        std::memset(blocks[i]->data, static_cast<int>(i + 1), 64);
      }
    });
  }
  for (auto& t : threads) t.join();
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(static_cast<uint8_t*>(blocks[i]->data)[0], static_cast<uint8_t>(i + 1));
    fxjit_block_put(blocks[i]);
  }
  fxjit_pool_trim(0);
  EXPECT_EQ(statistics().live_bytes, live);  // the threads' own lists went with them
}

TEST_F(Pool, AForkChildTakesAndReturnsBlocksWhileOtherThreadsHoldTheLock) {
  fxjit_block* before = fxjit_block_get(size_t{1} << 20);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) fxjit_block_put(fxjit_block_get(size_t{256} << 10));
  });
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(10);  // a lock taken over from the parent would hang here
      fxjit_block_put(before);
      fxjit_block* b = fxjit_block_get(size_t{1} << 20);
      bool good = b == before;
      std::memset(b->data, 1, b->capacity);
      fxjit_block_put(b);
      _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  fxjit_block_put(before);
}

// Outlives every destructor of the test, as a tensor in a global variable does.
struct AtExit {
  fxjit_block* block = nullptr;
  ~AtExit() { fxjit_block_put(block); }
};
AtExit at_exit;

TEST_F(Pool, BlocksReturnDuringExit) {
  pid_t child = fork();
  if (child == 0) {
    at_exit.block = fxjit_block_get(100);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
