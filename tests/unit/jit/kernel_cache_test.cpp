#include "jit/kernel_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <thread>
#include <vector>

#include "fxjit/errors.h"
#include "scaled_kernel.h"

namespace fxjit::jit {
namespace {

using kernel::Kernel;

class KernelCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!host_target()) GTEST_SKIP() << host_target().reason();
  }
  Options options;
};

TEST_F(KernelCacheTest, CompilesOnceAndRuns) {
  KernelCache cache;
  const Kernel k = scaled_by(3);
  const codegen::Schedule s = codegen::choose_schedule(k);
  const KernelHandle first = *cache.get(k, s, options);
  EXPECT_FALSE(first.was_cached);
  EXPECT_GT(first.compile_ms, 0);
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<float> out = run(first, s, k, x);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], 3 * x[i]) << i;
  const KernelHandle again = *cache.get(scaled_by(3), s, options);
  EXPECT_TRUE(again.was_cached);
  EXPECT_EQ(again.function, first.function);
  EXPECT_EQ(cache.size(), 1u);
}

TEST_F(KernelCacheTest, WhatChangesTheCodeChangesTheKey) {
  const Kernel k = scaled_by(3);
  const codegen::Schedule s = codegen::choose_schedule(k);
  const std::string key = kernel_key(k, s, avx2_target());
  EXPECT_EQ(key, kernel_key(scaled_by(3), s, avx2_target()));
  EXPECT_NE(key, kernel_key(scaled_by(4), s, avx2_target()));
  EXPECT_NE(key, kernel_key(k, s, avx512_target()));
  codegen::Schedule other = s;
  other.fast_math = true;
  EXPECT_NE(key, kernel_key(k, other, avx2_target()));
  EXPECT_NE(key.find(build_id()), std::string::npos);
  EXPECT_NE(key.find("-avx512bf16"), std::string::npos) << "features with their minus entries are part of the key";
}

TEST_F(KernelCacheTest, TheOptionChoosesTheTarget) {
  KernelCache cache;
  const Kernel k = scaled_by(2);
  const codegen::Schedule s = codegen::choose_schedule(k);
  for (const CpuTarget* target : {&avx2_target(), &avx512_target()}) {
    options.target = target->name;
    const Result<KernelHandle> h = cache.get(k, s, options);
    ASSERT_EQ(h.ok(), runs_here(*target)) << target->name;
    if (!h.ok()) {
      EXPECT_NE(h.reason().find(target->name), std::string::npos) << h.reason();
      continue;
    }
    EXPECT_EQ(run(*h, s, k, {1.5f}), std::vector<float>{3});
  }
}

TEST_F(KernelCacheTest, TheLeastRecentlyUsedGoesAndItsCodeStaysWithItsHolders) {
  KernelCache cache(2);
  const codegen::Schedule s = codegen::choose_schedule(scaled_by(1));
  const KernelHandle one = *cache.get(scaled_by(1), s, options);
  const KernelHandle two = *cache.get(scaled_by(2), s, options);
  EXPECT_TRUE(cache.get(scaled_by(1), s, options)->was_cached);
  const KernelHandle three = *cache.get(scaled_by(3), s, options);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_TRUE(cache.get(scaled_by(1), s, options)->was_cached);
  EXPECT_FALSE(cache.get(scaled_by(2), s, options)->was_cached);
  cache.clear();
  EXPECT_EQ(run(two, s, scaled_by(2), {5}), std::vector<float>{10});
  EXPECT_EQ(run(three, s, scaled_by(3), {5}), std::vector<float>{15});
}

TEST_F(KernelCacheTest, KernelThatDoesNotVerifyIsAnInternalError) {
  KernelCache cache;
  Kernel k = scaled_by(1);
  const codegen::Schedule s = codegen::choose_schedule(k);
  k.stores[0].expr = 99;
  EXPECT_THROW((void)cache.get(k, s, options), InternalError);
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(KernelCacheTest, SeveralThreadsAskAtOnce) {
  KernelCache cache;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 12; ++i) {
        const Kernel k = scaled_by(i % 4);
        const codegen::Schedule s = codegen::choose_schedule(k);
        const KernelHandle h = *cache.get(k, s, Options());
        if (run(h, s, k, {2.0f})[0] == static_cast<float>(2 * (i % 4))) ++right;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 48);
  EXPECT_EQ(cache.size(), 4u);
}

TEST_F(KernelCacheTest, ShowsWhatItCompiles) {
  const Kernel k = scaled_by(3);
  const codegen::Schedule s = codegen::choose_schedule(k);
  const std::string llvm = kernel_llvm(k, s, avx512_target());
  EXPECT_NE(llvm.find("fmul <16 x float>"), std::string::npos) << llvm;
  EXPECT_NE(kernel_assembly(k, s, avx512_target()).find("%zmm"), std::string::npos);
  EXPECT_EQ(kernel_assembly(k, s, avx2_target()).find("%zmm"), std::string::npos);
}

// The data layout that the emitters use is the one that code is generated for.
TEST_F(KernelCacheTest, EmittersKnowTheDataLayout) {
  const Kernel k = scaled_by(3);
  const codegen::Schedule s = codegen::choose_schedule(k);
  EXPECT_NE(kernel_llvm(k, s, avx2_target()).find(target_data_layout(avx2_target())), std::string::npos);
}

}  // namespace
}  // namespace fxjit::jit
