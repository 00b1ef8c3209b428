// Kernels in a folder: what is kept, what a damaged or foreign file does, and who may write there.
#include "jit/object_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "jit/kernel_cache.h"
#include "scaled_kernel.h"

namespace fxjit::jit {
namespace {

namespace fs = std::filesystem;

class ObjectCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fxjit-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {})); }

  std::string folder;
};

TEST_F(ObjectCacheTest, KeepsObjectsByTheirKey) {
  const ObjectCache cache = *ObjectCache::open(folder + "/made/on the way");
  EXPECT_EQ(cache.load("key"), std::nullopt);
  const std::string object("bytes \0 of an object", 20);
  ASSERT_TRUE(cache.store("key", object).ok());
  EXPECT_EQ(cache.load("key"), object);
  EXPECT_EQ(cache.load("another"), std::nullopt);
  ASSERT_TRUE(cache.store("key", "newer").ok());
  EXPECT_EQ(cache.load("key"), "newer");
}

TEST_F(ObjectCacheTest, ACollisionOfNamesIsNotTheKey) {
  const ObjectCache cache = *ObjectCache::open(folder);
  ASSERT_TRUE(cache.store("key", "object").ok());
  fs::rename(cache.path_of("key"), cache.path_of("another"));
  EXPECT_EQ(cache.load("another"), std::nullopt);
}

TEST_F(ObjectCacheTest, EveryDamagedByteAndEveryShorterFileIsNone) {
  const ObjectCache cache = *ObjectCache::open(folder);
  ASSERT_TRUE(cache.store("key", "object").ok());
  const std::string path = cache.path_of("key");
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    write(damaged);
    EXPECT_EQ(cache.load("key"), std::nullopt) << "byte " << i;
    write(whole.substr(0, i));
    EXPECT_EQ(cache.load("key"), std::nullopt) << "length " << i;
  }
  write(whole + "x");
  EXPECT_EQ(cache.load("key"), std::nullopt);
  write(whole);
  EXPECT_EQ(cache.load("key"), "object");
}

TEST_F(ObjectCacheTest, AFolderThatOthersMayWriteIsNotUsed) {
  ASSERT_EQ(::chmod(folder.c_str(), 0770), 0);
  const Result<ObjectCache> cache = ObjectCache::open(folder);
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(cache.reason().find("other users may write there"), std::string::npos) << cache.reason();
  std::ofstream(folder + "/file") << "x";
  ASSERT_FALSE(ObjectCache::open(folder + "/file").ok());
  ASSERT_FALSE(ObjectCache::open(folder + "/file/below").ok());
}

TEST_F(ObjectCacheTest, WritersAtOnceLeaveOneWholeFile) {
  const ObjectCache cache = *ObjectCache::open(folder);
  std::vector<std::thread> threads;
  for (char c : {'a', 'b', 'c', 'd'}) {
    threads.emplace_back([&cache, c] {
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(cache.store("key", std::string(10'000, c)).ok());
        const auto seen = cache.load("key");
        ASSERT_TRUE(seen);
        ASSERT_EQ(*seen, std::string(10'000, seen->front()));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(files(), 1u);
}

TEST_F(ObjectCacheTest, ASecondProcessesKernelComesFromTheFolder) {
  if (!host_target()) GTEST_SKIP() << host_target().reason();
  Options options;
  options.cache = folder;
  const kernel::Kernel k = scaled_by(3);
  const codegen::Schedule s = codegen::choose_schedule(k);
  KernelCache first, second;  // as two processes have
  EXPECT_FALSE(first.get(k, s, options)->from_disk);
  EXPECT_EQ(files(), 1u);
  const KernelHandle kept = *second.get(k, s, options);
  EXPECT_TRUE(kept.from_disk);
  EXPECT_EQ(run(kept, s, k, {1, 2, 3}), (std::vector<float>{3, 6, 9}));
  EXPECT_FALSE(second.get(scaled_by(4), s, options)->from_disk);
  EXPECT_EQ(files(), 2u);
  for (const auto& file : fs::directory_iterator(folder)) fs::resize_file(file.path(), 100);
  KernelCache third;  // damaged files are compiled anew and written again
  EXPECT_FALSE(third.get(k, s, options)->from_disk);
  EXPECT_TRUE(KernelCache().get(k, s, options)->from_disk);
}

TEST_F(ObjectCacheTest, WhatCannotBeWrittenIsCompiledAllTheSame) {
  if (!host_target()) GTEST_SKIP() << host_target().reason();
  Options options;
  options.cache = folder + "/file/below";
  std::ofstream(folder + "/file") << "x";
  const kernel::Kernel k = scaled_by(5);
  const codegen::Schedule s = codegen::choose_schedule(k);
  KernelCache cache;
  const KernelHandle h = *cache.get(k, s, options);
  EXPECT_FALSE(h.from_disk);
  EXPECT_EQ(run(h, s, k, {1, 2}), (std::vector<float>{5, 10}));
}

}  // namespace
}  // namespace fxjit::jit
