#include "torch/host_state.h"

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <xmmintrin.h>

namespace fxjit::inline v0::torch_ {

namespace {

uint64_t flags_under(const c10::impl::LocalDispatchKeySet& keys) {
  constexpr unsigned kFlushBits = 0x8040;  // FTZ and DAZ in MXCSR
  const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  const at::Context& context = at::globalContext();
  uint64_t flags = 0;
  auto set = [&flags](uint64_t bit, bool on) { flags |= on ? bit : 0; };
  auto byte = [&flags](auto value, int shift) { flags |= (static_cast<uint64_t>(value) & 0xff) << shift; };
  set(kGradMode, autograd.get_grad_mode());
  set(kInferenceMode, autograd.get_inference_mode());
  set(kForwardGradMode, autograd.get_fw_grad_mode());
  set(kDeterministic, context.deterministicAlgorithms());
  set(kDeterministicWarnOnly, context.deterministicAlgorithmsWarnOnly());
  set(kFillUninitialised, context.deterministicFillUninitializedMemory());
  set(kFlushDenormal, (_mm_getcsr() & kFlushBits) != 0);
  byte(c10::get_default_dtype_as_scalartype(), kDefaultDTypeShift);
  constexpr c10::DispatchKeySet kAutocast({c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA});
  if (keys.excluded_.has_all(kAutocast)) return flags;
  set(kAutocastCache, at::autocast::is_autocast_cache_enabled());
  byte(at::autocast::get_autocast_dtype(c10::DeviceType::CPU), kAutocastCpuShift);
  byte(at::autocast::get_autocast_dtype(c10::DeviceType::CUDA), kAutocastCudaShift);
  return flags;
}

}  // namespace

uint64_t global_flags() { return flags_under(c10::impl::tls_local_dispatch_key_set()); }

HostState host_state() {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  return {keys.included_.raw_repr(), keys.excluded_.raw_repr(), flags_under(keys)};
}

bool matmul_precision_lowered() {
  at::Float32Precision p = at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  return p == at::Float32Precision::TF32 || p == at::Float32Precision::BF16;
}

bool torch_function_mode_active() { return at::impl::torch_function_mode_enabled(); }

}  // namespace fxjit::inline v0::torch_
