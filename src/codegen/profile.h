// How a module is to be turned into machine code. The emitter of a module knows its kind; floor 6 knows what that
// means.
#pragma once

#include <cstdint>

namespace fxjit::inline v0::codegen {

enum class Profile : uint8_t {
  Straight,  // one loop without values carried around it: selection DAG without optimisation
  Carrying,  // rows and sums: a trimmed -O1, whose register allocator keeps the carried values in registers
  Host,      // the host function: fast selection, 10 us a node
};

}  // namespace fxjit::inline v0::codegen
