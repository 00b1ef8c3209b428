// What a CompiledFunction points to: one way of capturing a program, around driver::Function.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "driver/function.h"
#include "fxjit/driver/example.h"
#include "support/fault.h"

namespace fxjit::inline v0::driver {

class Front {
 public:
  virtual ~Front();
  // The hot path: inputs are borrowed.
  virtual at::Tensor call_tensor(std::span<c10::TensorImpl* const> in) = 0;
  virtual detail::CallResult call_tensors(std::span<c10::TensorImpl* const> in) = 0;
  virtual fx::Value call_values(std::span<const fx::Value> args, const fx::Value& kwargs) = 0;
  virtual Report report() = 0;
  virtual std::string code() = 0;
  virtual void reset() = 0;
};

// What is to be done where no specialisation covers a call.
enum class Miss : uint8_t { Record, Uncompiled };

// Decides by gradients, by what the function says, and by the option `strict` (RuntimeError with the reasons). Warns
// once per `warned` where gradients are the reason. `uncompiled_form`: "eager" or "generic form".
Miss decide_miss(Function& function, std::span<const at::Tensor> inputs, const char* uncompiled_form,
                 std::atomic<bool>& warned);

// Notes the reason for an uncompiled call; RuntimeError where the option `strict` forbids it.
void run_uncompiled(Function& function, const char* uncompiled_form, const std::string& reason);

// Why a program is not compiled at all: making what compiled calls need has failed once, and is not tried again until
// reset(). Thread-safe.
class GivenUp {
 public:
  explicit operator bool() const { return set_.load(std::memory_order_acquire); }
  // Runs `f`, an attempt to make something; false where it threw, as support::absorb_fault decides.
  template <class F>
  bool attempt(const Options& options, F f) {
    try {
      f();
      return true;
    } catch (const std::exception&) {
      set(support::absorb_fault(options));
      return false;
    }
  }
  void reset();
  // Adds the reason to the report, for calls that ran in `form`.
  void add_to(Report& report, const char* form) const;

 private:
  void set(std::string reason);
  mutable std::mutex mutex_;
  std::string reason_;
  std::atomic<bool> set_{false};
};

// One report of several functions that serve one program.
Report merge_reports(const std::vector<Report>& reports);

std::vector<at::Tensor> borrow_tensors(std::span<c10::TensorImpl* const> in);

// The result of a program that yields exactly one tensor; TypeError says what else it was.
at::Tensor single_tensor(const detail::CallResult& r);
[[noreturn]] void not_single(const fx::Value& structure);
// The structure with its tensors in place.
fx::Value build_value(const detail::CallResult& r);

}  // namespace fxjit::inline v0::driver
