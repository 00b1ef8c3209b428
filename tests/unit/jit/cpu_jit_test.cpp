#include "jit/cpu_jit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "fxjit/errors.h"
#include "modules.h"

namespace fxjit::jit {
namespace {

using test::parse_module;
using IntFn = int (*)(int);

const CpuTarget& here() { return **host_target(); }

std::shared_ptr<const CompiledCode> compile(const std::string& text, Profile profile = Profile::Straight,
                                            std::span<const NamedAddress> extra = {}) {
  auto parsed = parse_module(text);
  return CpuJit::process().add(std::move(parsed.module), profile, here(), extra);
}

std::string plus(int n) {
  return "define i32 @f(i32 %x) {\n  %y = add i32 %x, " + std::to_string(n) + "\n  ret i32 %y\n}\n";
}

// Bytes of executable memory that belong to no file: neighbouring mappings are merged by the system, so bytes count.
size_t code_bytes_mapped() {
  std::ifstream maps("/proc/self/maps");
  size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, path;
    words >> range >> rights >> offset >> device >> inode >> path;
    if (rights.find('x') == std::string::npos || !path.empty()) continue;
    const size_t dash = range.find('-');
    bytes += std::stoull(range.substr(dash + 1), nullptr, 16) - std::stoull(range.substr(0, dash), nullptr, 16);
  }
  return bytes;
}

class EveryProfile : public testing::TestWithParam<Profile> {};

TEST_P(EveryProfile, CodeRuns) { EXPECT_EQ(compile(plus(5), GetParam())->symbol<IntFn>("f")(37), 42); }

TEST_P(EveryProfile, EqualNamesOfDifferentModulesDoNotMeet) {
  auto a = compile(plus(1), GetParam());
  auto b = compile(plus(2), GetParam());
  EXPECT_EQ(a->symbol<IntFn>("f")(0), 1);
  EXPECT_EQ(b->symbol<IntFn>("f")(0), 2);
}

TEST_P(EveryProfile, FramePointersAndNoUnwindTables) {
  auto parsed = parse_module("declare i32 @g(i32)\n" +
                             std::string("define i32 @f(i32 %x) uwtable {\n"
                                         "  %y = call i32 @g(i32 %x)\n  %z = add i32 %y, 1\n  ret i32 %z\n}\n"));
  const std::string text = CpuJit::process().assembly(*parsed.module, GetParam(), here());
  EXPECT_NE(text.find("rbp"), std::string::npos) << text;
  EXPECT_EQ(text.find(".cfi_"), std::string::npos) << text;
}

TEST_P(EveryProfile, MultiplyAndAddAreNotContracted) {
  auto parsed = parse_module(
      "define <16 x float> @f(<16 x float> %a, <16 x float> %b, <16 x float> %c) {\n"
      "  %m = fmul <16 x float> %a, %b\n  %s = fadd <16 x float> %m, %c\n  ret <16 x float> %s\n}\n");
  for (const CpuTarget* target : {&avx512_target(), &avx2_target()}) {
    const std::string text = CpuJit::process().assembly(*parsed.module, GetParam(), *target);
    EXPECT_NE(text.find("mulps"), std::string::npos) << text;
    EXPECT_EQ(text.find("vfmadd"), std::string::npos) << text;
    const bool wide = GetParam() != Profile::Host && target == &avx512_target();
    EXPECT_EQ(text.find("zmm") != std::string::npos, wide) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Jit, EveryProfile, testing::Values(Profile::Straight, Profile::Carrying, Profile::Host));

TEST(CpuJit, TargetsNameOnlyFeaturesThatLlvmKnows) {
  testing::internal::CaptureStderr();  // LLVM warns there about names it does not know
  for (const CpuTarget* target : {&avx512_target(), &avx2_target()}) {
    auto parsed = parse_module(plus(1));
    CpuJit::process().assembly(*parsed.module, Profile::Straight, *target);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(CpuJit, CallsWhatTheCallerSupplies) {
  int (*triple)(int) = [](int x) { return 3 * x; };
  const NamedAddress extra[] = {{"__main__.triple it", reinterpret_cast<const void*>(triple)}};
  auto code = compile(
      "declare i32 @\"__main__.triple it\"(i32)\n"
      "define i32 @f(i32 %x) {\n  %y = call i32 @\"__main__.triple it\"(i32 %x)\n  ret i32 %y\n}\n",
      Profile::Host, extra);
  EXPECT_EQ(code->symbol<IntFn>("f")(14), 42);
}

TEST(CpuJit, CallsTheRuntime) {
  auto code = compile(
      "declare ptr @memcpy(ptr, ptr, i64)\n"
      "define i32 @f(ptr %to, ptr %from) {\n  %p = call ptr @memcpy(ptr %to, ptr %from, i64 4)\n  ret i32 0\n}\n");
  int from = 42, to = 0;
  code->symbol<int (*)(int*, const int*)>("f")(&to, &from);
  EXPECT_EQ(to, 42);
}

TEST(CpuJit, UnresolvedSymbolIsAnInternalErrorThatNamesIt) {
  // In libc, so that a search of the process would find it.
  const std::string text =
      "declare i32 @puts(i32)\ndefine i32 @f(i32 %x) {\n  %y = call i32 @puts(i32 %x)\n  ret i32 %y\n}\n";
  try {
    compile(text);
    FAIL() << "it linked";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("puts"), std::string::npos) << e.what();
  }
  EXPECT_EQ(compile(plus(1))->symbol<IntFn>("f")(1), 2) << "the session must survive a failed link";
}

TEST(CpuJit, MissingSymbolOfAModuleIsAnInternalErrorThatNamesIt) {
  auto code = compile(plus(1));
  try {
    code->address("h");
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("h"), std::string::npos);
  }
}

TEST(CpuJit, ModuleThatDoesNotVerifyIsAnInternalError) {
  auto parsed = parse_module(plus(1));
  llvm::Function* f = parsed.module->getFunction("f");
  f->getEntryBlock().getTerminator()->eraseFromParent();
  EXPECT_THROW(CpuJit::process().add(std::move(parsed.module), Profile::Straight, here()), InternalError);
}

TEST(CpuJit, CodeIsUnmappedWithItsLastReference) {
  compile(plus(0));
  const size_t before = code_bytes_mapped();
  std::vector<std::shared_ptr<const CompiledCode>> kept;
  for (int i = 0; i < 50; ++i) kept.push_back(compile(plus(i)));
  EXPECT_GE(code_bytes_mapped(), before + 50 * 4096);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(kept[i]->symbol<IntFn>("f")(1), i + 1);
  kept.clear();
  EXPECT_EQ(code_bytes_mapped(), before);
}

// Resident memory after 500 cycles of compile and free differs from that after 1000 by noise.
TEST(CpuJit, MemoryStaysFlat) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
  auto resident_kib = [] {
    std::ifstream statm("/proc/self/statm");
    size_t total = 0, resident = 0;
    statm >> total >> resident;
    return resident * 4;
  };
  for (int i = 0; i < 500; ++i) compile(plus(i));
  const size_t before = resident_kib();
  for (int i = 0; i < 500; ++i) compile(plus(i));
  EXPECT_LE(resident_kib(), before + 1024);  // 2 KiB a cycle
}

TEST(CpuJit, SeveralThreadsCompileAtOnce) {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &right] {
      for (int i = 0; i < 20; ++i) {
        const Profile profile = static_cast<Profile>((t + i) % 3);
        if (compile(plus(100 * t + i), profile)->symbol<IntFn>("f")(1) == 100 * t + i + 1) ++right;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 80);
}

TEST(CpuJit, CompilesAndFreesInAForkChildWhileTheParentCompiles) {
  auto inherited = compile(plus(7));
  std::atomic<bool> stop{false};
  std::thread busy([&stop] {
    for (int i = 0; !stop; ++i) compile(plus(i));
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      ::alarm(20);  // a lock that was inherited in use would hang
      const bool ok = compile(plus(1))->symbol<IntFn>("f")(1) == 2 && inherited->symbol<IntFn>("f")(1) == 8;
      inherited.reset();
      ::_exit(ok ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round << ", status " << status;
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace fxjit::jit
