#include "jit/cpu_target.h"

#include <cpuid.h>

namespace fxjit::inline v0::jit {
namespace {

#define FXJIT_V3                                                                                                     \
  "+cx8,+cx16,+fxsr,+mmx,+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+sahf,+crc32,+avx,+avx2,+bmi,+bmi2,+f16c,+" \
  "fma,+lzcnt,+movbe,+xsave"

// avx512bf16's conversion flushes denormals, avx512fp16 would compute halves without the rounding of fp32 between, and
// a preference for 256 bits halves the width of what the emitters wrote for 512.
constexpr CpuTarget kAvx512 = {
    "avx512", "x86-64-v4",
    FXJIT_V3
    ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+evex512,-prefer-256-bit,-avx512bf16,-avx512fp16"
    ",-avx512vnni,-avx512vbmi,-avx512vbmi2,-avx512ifma,-avx512bitalg,-avx512vpopcntdq,-avx512vp2intersect"
    ",-avx10.1-256,-avxneconvert,-avxvnni,-avxifma,-amx-tile,-gfni,-vaes,-vpclmulqdq"};

constexpr CpuTarget kAvx2 = {"avx2", "x86-64-v3",
                             FXJIT_V3
                             ",-avx512f,-avx512bf16,-avx512fp16,-avxneconvert,-avxvnni,-avxifma,-avx10.1-256"
                             ",-amx-tile,-gfni,-vaes,-vpclmulqdq"};
#undef FXJIT_V3

constexpr CpuTarget kBaseline = {"x86-64", "x86-64", ""};

constexpr bool has(uint64_t word, uint64_t mask) { return (word & mask) == mask; }
constexpr uint64_t bits(std::initializer_list<int> positions) {
  uint64_t mask = 0;
  for (int p : positions) mask |= uint64_t{1} << p;
  return mask;
}

uint64_t read_xcr0() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

CpuWords read_words() {
  CpuWords words;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) words.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words.leaf7_ebx = b;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) words.ext1_ecx = c;
  if (has(words.leaf1_ecx, bits({27}))) words.xcr0 = read_xcr0();  // OSXSAVE: xgetbv exists
  return words;
}

}  // namespace

const CpuTarget& avx512_target() { return kAvx512; }
const CpuTarget& avx2_target() { return kAvx2; }
const CpuTarget& baseline_target() { return kBaseline; }

const CpuTarget* find_target(std::string_view name) {
  for (const CpuTarget* t : {&kAvx512, &kAvx2}) {
    if (name == t->name) return t;
  }
  return nullptr;
}

// Bit positions: Intel SDM volume 2, CPUID, and volume 1, 13.3 (XCR0).
CpuFacts facts_of(const CpuWords& w) {
  CpuFacts facts;
  // sse3, ssse3, fma, cx16, sse4.1, sse4.2, movbe, popcnt, xsave, osxsave, avx, f16c
  const bool leaf1 = has(w.leaf1_ecx, bits({0, 9, 12, 13, 19, 20, 22, 23, 26, 27, 28, 29}));
  const bool leaf7 = has(w.leaf7_ebx, bits({3, 5, 8}));           // bmi, avx2, bmi2
  const bool ext = has(w.ext1_ecx, bits({0, 5}));                 // lahf/sahf, lzcnt
  facts.v3 = leaf1 && leaf7 && ext && has(w.xcr0, bits({1, 2}));  // xmm, ymm saved
  // avx512f, dq, cd, bw, vl; mask registers and both halves of zmm saved
  facts.v4 = facts.v3 && has(w.leaf7_ebx, bits({16, 17, 28, 30, 31})) && has(w.xcr0, bits({5, 6, 7}));
  return facts;
}

CpuFacts host_facts() {
  static const CpuFacts facts = facts_of(read_words());
  return facts;
}

bool runs_here(const CpuTarget& target) {
  return &target == &kBaseline || (&target == &kAvx512 ? host_facts().v4 : host_facts().v3);
}

Result<const CpuTarget*> host_target() {
  if (host_facts().v4) return &kAvx512;
  if (host_facts().v3) return &kAvx2;
  return Failure{
      "no compiled kernels: this CPU, or the system's saving of its registers, is below x86-64-v3 "
      "(AVX2, F16C, FMA, BMI2)"};
}

}  // namespace fxjit::inline v0::jit
