// New tensors for results: a block of the runtime's pool in a storage that behaves like any other of torch's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "fxjit/dtype.h"

namespace fxjit::inline v0::torch_ {

// A CPU tensor of these sizes and strides over uninitialised, 64-byte aligned memory; *data is its first element (NULL
// for no elements). The storage can be resized, its memory returns to the pool from any thread. Without memory, or
// where the byte count overflows, it throws what at::empty_strided throws. Inference mode gives inference tensors.
c10::intrusive_ptr<c10::TensorImpl> make_output(DType dtype, int32_t rank, const int64_t* sizes, const int64_t* strides,
                                                void** data);

}  // namespace fxjit::inline v0::torch_
