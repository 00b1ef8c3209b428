// What a specialised `forward` refers to by number: calls into the host. One per specialisation, immutable while it
// runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/abi.h"

namespace fxjit::inline v0::torch_ {

// One node that is no kernel: an ATen operator, a library call.
class HostCall {
 public:
  virtual ~HostCall();
  // Reads slots, symbols and its own constants; fills its result slots, which are empty before. Never throws: an
  // exception goes into the frame (frame_error.h).
  virtual fxjit_status run(fxjit_frame* frame) const noexcept = 0;
  // "aten::addmm", for explain().
  virtual std::string name() const = 0;
};

struct HostProgram {
  std::vector<std::unique_ptr<HostCall>> calls;  // table->call(frame, i) runs calls[i]; null for steps that are kernels
  int32_t num_inputs = 0;                        // the first slots borrow inputs while callees need them
  int32_t num_slots = 0;
  int32_t num_symbols = 0;
  // Which of forward's results are references of their own (all where empty); the others are borrowed from a slot.
  std::vector<bool> owned_results;
};

// The table of specialised programs. Slots behind the inputs own a TensorImpl each; frame->program is a HostProgram.
const fxjit_table* specialised_table();

// What generated guards ask about an input where the plain fields do not tell.
bool requires_grad(void* tensor);

// A fxjit_parallel_for on torch's thread pool.
void host_parallel_for(int64_t begin, int64_t end, int64_t grain, fxjit_kernel fn, void* ctx);

}  // namespace fxjit::inline v0::torch_
