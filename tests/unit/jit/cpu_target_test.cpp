#include "jit/cpu_target.h"

#include <gtest/gtest.h>

namespace fxjit::jit {
namespace {

// The words of a Skylake-SP under a system that saves all registers.
CpuWords skylake() {
  CpuWords w;
  w.leaf1_ecx = 0x7ffefbff;
  w.leaf7_ebx = 0xd39ffffb;
  w.ext1_ecx = 0x121;
  w.xcr0 = 0xe7;
  return w;
}

TEST(CpuTarget, SkylakeRunsBoth) {
  const CpuFacts facts = facts_of(skylake());
  EXPECT_TRUE(facts.v3);
  EXPECT_TRUE(facts.v4);
}

TEST(CpuTarget, RegistersThatTheSystemDoesNotSaveDoNotCount) {
  CpuWords w = skylake();
  w.xcr0 = 0x7;  // no mask registers, no zmm
  EXPECT_TRUE(facts_of(w).v3);
  EXPECT_FALSE(facts_of(w).v4);
  w.xcr0 = 0x3;  // no ymm
  EXPECT_FALSE(facts_of(w).v3);
}

TEST(CpuTarget, EachInstructionSetOfV3IsNeeded) {
  for (int bit : {12, 22, 28, 29}) {  // fma, movbe, avx, f16c
    CpuWords w = skylake();
    w.leaf1_ecx &= ~(1u << bit);
    EXPECT_FALSE(facts_of(w).v3) << bit;
    EXPECT_FALSE(facts_of(w).v4) << bit;
  }
  CpuWords w = skylake();
  w.leaf7_ebx &= ~(1u << 5);  // avx2
  EXPECT_FALSE(facts_of(w).v3);
  w = skylake();
  w.ext1_ecx &= ~(1u << 5);  // lzcnt
  EXPECT_FALSE(facts_of(w).v3);
}

TEST(CpuTarget, EachInstructionSetOfV4IsNeeded) {
  for (int bit : {16, 17, 28, 30, 31}) {
    CpuWords w = skylake();
    w.leaf7_ebx &= ~(1u << bit);
    EXPECT_TRUE(facts_of(w).v3) << bit;
    EXPECT_FALSE(facts_of(w).v4) << bit;
  }
}

TEST(CpuTarget, AgreesWithTheCompilersOwnDetection) {
  __builtin_cpu_init();
  EXPECT_EQ(host_facts().v3, __builtin_cpu_supports("x86-64-v3") != 0);
  EXPECT_EQ(host_facts().v4, __builtin_cpu_supports("x86-64-v4") != 0);
}

TEST(CpuTarget, ByName) {
  EXPECT_EQ(find_target("avx512"), &avx512_target());
  EXPECT_EQ(find_target("avx2"), &avx2_target());
  EXPECT_EQ(find_target("avx"), nullptr);
}

}  // namespace
}  // namespace fxjit::jit
