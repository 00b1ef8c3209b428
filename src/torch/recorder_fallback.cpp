// The only file that includes torch/library.h (6 s), and the owner of the one fallback that may sit on the key.
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "support/errors.h"
#include "torch/recorder.h"

namespace fxjit::inline v0::torch_ {
namespace {

// Free for out-of-tree use, above autograd, autocast and functorch: it sees composites whole.
constexpr c10::DispatchKey kKey = c10::DispatchKey::DeferredInit;

// Per thread, as the dispatch keys are.
thread_local Recorder* active = nullptr;

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  if (active) {
    active->run(op, below, stack);
  } else {
    op.redispatchBoxed(below, stack);
  }
}

std::string install() {
  try {
    // Leaked: unregistering at exit would race with threads that still dispatch.
    auto* library = new torch::Library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
    return "";
  } catch (const std::exception& e) {
    return std::string("the dispatch recorder cannot be installed: ") + e.what();
  }
}

void set_on(bool on) { c10::impl::tls_set_dispatch_key_included(kKey, on); }

}  // namespace

std::string install_recorder() {
  static const std::string problem = install();
  return problem;
}

RecordingGuard::RecordingGuard(Recorder& recorder) {
  if (std::string problem = install_recorder(); !problem.empty()) throw RuntimeError(problem);
  if (active) throw RuntimeError("a recorder is on already in this thread");
  active = &recorder;
  set_on(true);
}

RecordingGuard::~RecordingGuard() {
  set_on(false);
  active = nullptr;
}

bool is_recording() { return active != nullptr && c10::impl::tls_is_dispatch_key_included(kKey); }

PauseRecording::PauseRecording() : was_on_(is_recording()) {
  if (was_on_) set_on(false);
}

PauseRecording::~PauseRecording() {
  if (was_on_) set_on(true);
}

}  // namespace fxjit::inline v0::torch_
