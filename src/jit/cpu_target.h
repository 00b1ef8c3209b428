// The two CPU targets that kernels are compiled for, and what of them this machine can run.
#pragma once

#include <cstdint>
#include <string_view>

#include "fxjit/api.h"
#include "support/result.h"

namespace fxjit::inline v0::jit {

// A target is the same on every machine: its features are listed one by one, the unwanted ones with a minus, so that
// equal kernels have equal code and the list can be part of a cache key.
struct CpuTarget {
  const char* name;      // "avx512", "avx2"
  const char* cpu;       // LLVM's processor name: scheduling model and tuning
  const char* features;  // LLVM's feature list
};

FXJIT_API const CpuTarget& avx512_target();
FXJIT_API const CpuTarget& avx2_target();

// What every x86-64 runs: host functions, which hold no vectors, are compiled for it on all machines.
FXJIT_API const CpuTarget& baseline_target();

// One of the two kernel targets by name; nullptr for a name that is neither.
FXJIT_API const CpuTarget* find_target(std::string_view name);

// What cpuid and xgetbv say: the instruction sets of a target count only where the system saves their registers.
struct CpuFacts {
  bool v3 = false;  // x86-64-v3: AVX2, BMI, F16C, FMA, LZCNT, MOVBE
  bool v4 = false;  // v3 with AVX-512 F, BW, CD, DQ, VL
};

// The words of cpuid that the facts rest on, and XCR0; apart, so that a test can make them up.
struct CpuWords {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, ext1_ecx = 0;
  uint64_t xcr0 = 0;
};
CpuFacts facts_of(const CpuWords& words);
CpuFacts host_facts();

FXJIT_API bool runs_here(const CpuTarget& target);

// The best target of this machine. Below x86-64-v3 there are no compiled kernels: half types and fma would become
// calls per lane, which do not even link.
FXJIT_API Result<const CpuTarget*> host_target();

}  // namespace fxjit::inline v0::jit
