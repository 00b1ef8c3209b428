// How a kernel's loops are laid out: decided from the kernel alone, part of its cache key, no LLVM in sight.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/kernel.h"

namespace fxjit::inline v0::codegen {

// Which code generator settings fit the loops; src/jit applies them.
enum class Profile : uint8_t {
  Straight,  // no value is carried round a loop but its counter: selection DAG at O0
  Carrying,  // accumulators live in registers across iterations, or the body is short: the trimmed `Less` pipeline
};

struct Schedule {
  int32_t vectors = 4;       // U: vectors of `lanes` elements in one step of the main loop
  int64_t block = 4096;      // elementwise: elements of the inner axis in one unit; rows: not used (a unit is a row)
  bool nontemporal = false;  // outputs are stored past the caches: their base and outer strides are 64-byte multiples
  bool fast_math = false;    // contraction and reassociation allowed
  Profile profile = Profile::Straight;
  bool operator==(const Schedule&) const = default;
};

struct ScheduleOptions {
  bool nontemporal = false;  // the driver's decision, from the size of the outputs; ignored where it does not apply
  bool fast_math = false;
  int32_t lanes = 16;  // of the target, and its registers (TargetHooks)
  int32_t registers = 32;
};

// With what a target has: "avx512", "avx2", anything else is a target of scalars.
ScheduleOptions schedule_options(std::string_view target);

// U by the size of the body (code size is what compile time is made of), the block so that each unit's part of each
// output is a multiple of 64 bytes.
Schedule choose_schedule(const kernel::Kernel& k, const ScheduleOptions& options = {});

// About the number of vector instructions an expression becomes, for choices like these and for the work of a launch.
int cost_of(const kernel::Kernel& k, const kernel::Expr& e);

// Units that a launch of `k` runs over, for these extents, and the `blocks` field of its fxjit_launch.
int64_t unit_count(const kernel::Kernel& k, const Schedule& s, const int64_t* extents);
int64_t blocks_per_outer(const kernel::Kernel& k, const Schedule& s, const int64_t* extents);

// Canonical text of a schedule, for cache keys and dumps: "u4 block4096 nt carrying fast".
std::string print(const Schedule& s);

}  // namespace fxjit::inline v0::codegen
