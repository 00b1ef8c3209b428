#include "driver/library_calls.h"

namespace fxjit::inline v0::driver {

std::unique_ptr<torch_::HostCall> library_call(const fx::Node&, const torch_::Binder&, const std::vector<int32_t>&,
                                               std::string*) {
  return nullptr;
}

}  // namespace fxjit::inline v0::driver
