#include "torch/host_table.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <new>

#include "runtime/fork.h"
#include "runtime/frame.h"
#include "support/errors.h"
#include "torch/frame_error.h"
#include "torch/output.h"

// Exported by libtorch_cpu (torch/csrc/stable/c/shim.h), where the OpenMP region is compiled: ours never are.
extern "C" int32_t torch_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*fn)(int64_t, int64_t, void*),
                                      void* ctx);

namespace fxjit::inline v0::torch_ {
namespace {

c10::TensorImpl* tensor(fxjit_frame* frame, int32_t slot) { return static_cast<c10::TensorImpl*>(frame->slots[slot]); }

fxjit_status call(fxjit_frame* frame, int32_t node) {
  const auto& program = *static_cast<const HostProgram*>(frame->program);
  return program.calls[static_cast<size_t>(node)]->run(frame);
}

void release(fxjit_frame* frame, int32_t slot) {
  c10::TensorImpl* t = tensor(frame, slot);
  if (!t) return;
  frame->slots[slot] = nullptr;
  c10::raw::intrusive_ptr::decref(t);
}

fxjit_status empty(fxjit_frame* frame, int32_t slot, int32_t dtype, int32_t rank, const int64_t* sizes,
                   const int64_t* strides, void** data) {
  try {
    release(frame, slot);
    frame->slots[slot] = make_output(static_cast<DType>(dtype), rank, sizes, strides, data).release();
    return FXJIT_OK;
  } catch (...) {
    return catch_into(frame);
  }
}

// Mutable: a lazily copied storage gets memory of its own here.
void* data(fxjit_frame* frame, int32_t slot) { return tensor(frame, slot)->mutable_data(); }

// Owns a frame for one call.
class Frame {
 public:
  Frame(const HostProgram& program, const HostState& state)
      : frame_(fxjit_frame_acquire(program.num_slots, program.num_symbols)), program_(program) {
    if (!frame_) throw std::bad_alloc();
    frame_->table = specialised_table();
    frame_->program = &program;
    frame_->parallel = &host_parallel_for;
    frame_->threads = fxjit_in_fork_child() ? 1 : at::get_num_threads();
    static_assert(sizeof(HostState) == 3 * sizeof(uint64_t));
    frame_->words = &state.included;
  }
  ~Frame() { fxjit_frame_release(frame_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  fxjit_frame* get() const { return frame_; }

  // Slots that borrowed an input are forgotten; of the others, what forward has not released is dropped. After a
  // success there is mostly nothing: a scan of a few words.
  void clear() {
    for (int32_t s = program_.num_inputs; s < program_.num_slots; ++s) release(frame_, s);
  }

 private:
  fxjit_frame* frame_;
  const HostProgram& program_;
};

bool is_owned(const HostProgram& program, size_t i) {
  return program.owned_results.empty() || program.owned_results[i];
}

// Gives each result a reference of its own.
void own(const HostProgram& program, std::span<c10::TensorImpl*> out) {
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] && !is_owned(program, i)) c10::raw::intrusive_ptr::incref(out[i]);
}

void drop(const HostProgram& program, std::span<c10::TensorImpl*> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] && is_owned(program, i)) c10::raw::intrusive_ptr::decref(out[i]);
    out[i] = nullptr;
  }
}

[[noreturn]] void raise(Frame& frame, fxjit_status status) {
  if (std::exception_ptr e = take_error(frame.get())) std::rethrow_exception(e);
  if (status == FXJIT_NO_MEMORY)
    throw RuntimeError("out of memory: the scratch memory of a compiled call cannot be allocated");
  throw InternalError("a compiled call failed without an exception");
}

}  // namespace

HostCall::~HostCall() = default;

const fxjit_table* specialised_table() {
  static const fxjit_table table = {&call, &release, &empty, &data};
  return &table;
}

void host_parallel_for(int64_t begin, int64_t end, int64_t grain, fxjit_kernel fn, void* ctx) {
  torch_parallel_for(begin, end, grain, fn, ctx);  // kernels do not throw, so its status is always success
}

bool requires_grad(void* tensor) { return static_cast<c10::TensorImpl*>(tensor)->requires_grad(); }

bool run_specialised(fxjit_specialised forward, const HostProgram& program, std::span<c10::TensorImpl* const> in,
                     const int64_t* scalars, std::span<c10::TensorImpl*> out, const HostState& state) {
  std::fill(out.begin(), out.end(), nullptr);
  Frame frame(program, state);
  auto* values = reinterpret_cast<const fxjit_value*>(in.data());
  fxjit_status status = forward(frame.get(), values, scalars, reinterpret_cast<fxjit_value*>(out.data()));
  if (C10_LIKELY(status == FXJIT_OK)) {
    own(program, out);
  } else {
    drop(program, out);
  }
  frame.clear();
  if (status == FXJIT_GUARD) return false;
  if (status != FXJIT_OK) raise(frame, status);
  return true;
}

}  // namespace fxjit::inline v0::torch_
