// What of torch's global and thread-local state decides how an operator behaves: part of a specialisation's key, read
// at each call.
#pragma once

#include <cstdint>

namespace fxjit::inline v0::torch_ {

// In this order the words of a frame: see fxjit_frame::words.
struct HostState {
  uint64_t included = 0;  // thread-local dispatch keys
  uint64_t excluded = 0;
  uint64_t flags = 0;  // global_flags()
  bool operator==(const HostState&) const = default;
};

// Bits of global_flags(), lowest first.
enum HostFlag : uint64_t {
  kGradMode = 1u << 0,
  kInferenceMode = 1u << 1,
  kForwardGradMode = 1u << 2,
  kDeterministic = 1u << 3,
  kDeterministicWarnOnly = 1u << 4,
  kFillUninitialised = 1u << 5,
  kFlushDenormal = 1u << 6,  // flush-to-zero or denormals-are-zero of the calling thread
  kDefaultDTypeShift = 8,    // 8 bits: c10::ScalarType
  // Zero while autocast is off for both devices, which the excluded keys tell: 12 ns less at each call.
  kAutocastCache = 1u << 7,
  kAutocastCpuShift = 16,  // 8 bits: its dtype
  kAutocastCudaShift = 24,
};

uint64_t global_flags();
// Whether the float32 precision setting lets oneDNN round the operands of a matmul. Not among the flags: it costs 11
// ns, and only library calls, which ask themselves, depend on it.
bool matmul_precision_lowered();
HostState host_state();

inline bool grad_mode(const HostState& s) { return (s.flags & kGradMode) != 0; }

// True while a __torch_function__ mode of Python is active on this thread; not visible in the dispatch keys.
bool torch_function_mode_active();

}  // namespace fxjit::inline v0::torch_
