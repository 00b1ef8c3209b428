// What a CompiledFunction points to: one way of capturing a program, around driver::Function.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "driver/function.h"
#include "fxjit/driver/example.h"

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

// One report of several functions that serve one program.
Report merge_reports(const std::vector<Report>& reports);

std::vector<at::Tensor> borrow_tensors(std::span<c10::TensorImpl* const> in);

// The result of a program that yields exactly one tensor; TypeError says what else it was.
at::Tensor single_tensor(const detail::CallResult& r);
[[noreturn]] void not_single(const fx::Value& structure);
// The structure with its tensors in place.
fx::Value build_value(const detail::CallResult& r);

}  // namespace fxjit::inline v0::driver
