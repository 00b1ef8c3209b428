// Where the fields of a host tensor lie, in bytes: guards and data pointers are read in IR without a torch header on
// this floor. src/torch/layout.cpp fills it and checks it on real tensors before anything is compiled.
#pragma once

#include <cstdint>

namespace fxjit::inline v0::codegen {

struct TensorLayout {
  // From the TensorImpl*.
  int32_t storage = 0;          // StorageImpl*; null only for undefined and opaque tensors
  int32_t autograd_meta = 0;    // pointer; null means: requires no gradient (not null: ask the host)
  int32_t version_counter = 0;  // pointer; null for inference tensors
  int32_t rank = 0;             // u64
  int32_t inline_sizes = 0;     // i64[inline_rank] sizes, then i64[inline_rank] strides, where rank <= inline_rank;
                                // else a pointer to i64[rank] sizes, then i64[rank] strides
  int32_t inline_rank = 5;
  int32_t storage_offset = 0;  // i64, in elements
  int32_t numel = 0;           // i64
  int32_t dtype = 0;           // u16: a DType's value
  int32_t device_type = 0;     // i8: 0 is the CPU
  int32_t device_index = 0;    // i8: -1 for the CPU
  int32_t key_set = 0;         // u64: the dispatch key set, which tells subclasses, conj and neg bits, inference
  // From the StorageImpl*.
  int32_t storage_data = 0;  // void*
  // From the version counter.
  int32_t version = 0;  // u32
  bool operator==(const TensorLayout&) const = default;
};

}  // namespace fxjit::inline v0::codegen
