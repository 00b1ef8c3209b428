// Arena, dump, log, timer, FunctionRef.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fxjit/errors.h"
#include "fxjit/function_ref.h"
#include "support/arena.h"
#include "support/dump.h"
#include "support/log.h"
#include "support/timer.h"

namespace fxjit::support {
namespace {

TEST(Arena, KeepsAlignmentAcrossChunksAndLargeBlocks) {
  Arena arena(64);
  for (size_t alignment : {1u, 2u, 8u, 64u}) {
    for (size_t size : {1u, 7u, 63u, 1000u, 3u << 20}) {
      void* p = arena.allocate(size, alignment);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u);
      std::memset(p, 1, size);
    }
  }
  EXPECT_EQ(arena.copy("name"), "name");
  EXPECT_GE(arena.bytes(), size_t{3} << 20);
}

TEST(Dump, WritesTheStagesThatWereAskedForIntoFiles) {
  const auto dir = std::filesystem::path(testing::TempDir()) / "fxjit-dump";
  std::filesystem::remove_all(dir);
  const Dump dump("graph,llvm:" + dir.string());
  EXPECT_TRUE(dump.wants(DumpStage::Graph));
  EXPECT_FALSE(dump.wants(DumpStage::Kernel));
  dump.write(DumpStage::Llvm, "for/ward", "define");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    ++files;
    EXPECT_TRUE(entry.path().string().ends_with("-for_ward.ll"));
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_EQ(text.str(), "define");
  }
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(dir);
}

TEST(Dump, AnUnknownStageIsRefused) {
  EXPECT_THROW(Dump("graf"), ValueError);
  EXPECT_FALSE(Dump("").wants(DumpStage::Graph));
}

std::string last_warning;

TEST(Log, WarningsGoToTheHandler) {
  const WarningHandler before = set_warning_handler([](const std::string& m) { last_warning = m; });
  warn("careful");
  EXPECT_EQ(last_warning, "careful");
  set_warning_handler(before);
}

TEST(Log, LevelsAreParsed) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::Debug);
  EXPECT_EQ(parse_log_level("off"), LogLevel::Off);
  EXPECT_EQ(parse_log_level("?"), LogLevel::Warn);
}

TEST(Timer, StagesAreSummedInOrder) {
  StageTimes times;
  times.add("trace", 1);
  times.add("emit", 2);
  times.add("trace", 3);
  {
    auto scope = times.scope("link");
  }
  ASSERT_EQ(times.stages().size(), 3u);
  EXPECT_EQ(times.stages()[0].first, "trace");
  EXPECT_EQ(times.stages()[0].second, 4);
  EXPECT_GE(times.total(), 6);
}

TEST(FunctionRef, CallsWhatItWasMadeFrom) {
  int calls = 0;
  const auto count = [&](int by) { return calls += by; };
  const FunctionRef<int(int)> ref = count;
  EXPECT_EQ(ref(2), 2);
  EXPECT_EQ(ref(3), 5);
  EXPECT_FALSE(FunctionRef<int(int)>());
}

}  // namespace
}  // namespace fxjit::support
