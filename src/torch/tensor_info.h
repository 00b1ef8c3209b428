// What the recorder keeps of a tensor: everything but its data and a reference that would keep it alive.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fxjit::inline v0::torch_ {

struct TensorInfo {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t storage_offset = 0;
  bool requires_grad = false;
  bool supported = false;   // it has a TensorType (type_import.h); else only dtype and device are set
  std::string unsupported;  // why not
};

}  // namespace fxjit::inline v0::torch_
