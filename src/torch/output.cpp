#include "torch/output.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include "runtime/pool.h"
#include "torch/dtype.h"

namespace fxjit::inline v0::torch_ {
namespace {

void report(const fxjit_block* block, int64_t sign) {
  // A thread-local look-up of 2 ns when no profiler is on. The totals are torch's own allocator's business: 0.
  if (C10_LIKELY(!c10::memoryProfilingEnabled())) return;
  c10::reportMemoryUsageToProfiler(block->data, sign * static_cast<int64_t>(block->capacity), 0, 0,
                                   c10::Device(c10::DeviceType::CPU));
}

void delete_block(void* context) {
  report(static_cast<fxjit_block*>(context), -1);
  fxjit_block_delete(context);
}

c10::DataPtr allocate(size_t bytes) {
  if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
  fxjit_block* block = fxjit_block_get(bytes);
  if (C10_UNLIKELY(!block)) return c10::GetCPUAllocator()->allocate(bytes);  // raises torch's own error
  report(block, +1);
  return {block->data, block, &delete_block, c10::Device(c10::DeviceType::CPU)};
}

// Bytes from the first element to the last, and whether the strides are row-major. False where torch would raise.
bool storage_bytes(size_t item, int32_t rank, const int64_t* sizes, const int64_t* strides, size_t* bytes,
                   bool* contiguous) {
  int64_t last = 0;
  int64_t expected = 1;
  bool bad = false;
  bool row_major = true;
  bool empty = false;
  for (int32_t i = rank - 1; i >= 0; --i) {
    bad |= sizes[i] < 0;
    empty |= sizes[i] == 0;
    row_major &= strides[i] == expected;
    int64_t step;
    bad |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step);
    bad |= __builtin_add_overflow(last, step, &last);
    bad |= __builtin_mul_overflow(expected, sizes[i] == 0 ? 1 : sizes[i], &expected);
  }
  *contiguous = row_major;
  if (empty) last = -1;
  bad |= __builtin_mul_overflow(last + 1, static_cast<int64_t>(item), reinterpret_cast<int64_t*>(bytes));
  return !bad;
}

}  // namespace

c10::intrusive_ptr<c10::TensorImpl> make_output(DType dtype, int32_t rank, const int64_t* sizes, const int64_t* strides,
                                                void** data) {
  c10::IntArrayRef shape(sizes, static_cast<size_t>(rank));
  c10::IntArrayRef steps(strides, static_cast<size_t>(rank));
  bool contiguous;
  size_t bytes = 0;
  if (C10_UNLIKELY(!storage_bytes(size_of(dtype), rank, sizes, strides, &bytes, &contiguous))) {
    at::Tensor t = at::detail::empty_strided_cpu(shape, steps, to_scalar_type(dtype));  // raises what eager raises
    *data = t.unsafeGetTensorImpl()->mutable_data();
    return t.getIntrusivePtr();
  }
  c10::DataPtr memory = allocate(bytes);
  *data = memory.get();
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                       c10::SymInt(static_cast<int64_t>(bytes)), std::move(memory),
                                                       c10::GetCPUAllocator(), /*resizable=*/true);
  auto impl =
      c10::make_intrusive<c10::TensorImpl>(c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                           caffe2::TypeMeta::fromScalarType(to_scalar_type(dtype)));
  if (contiguous) {
    impl->set_sizes_contiguous(shape);  // half the price of deciding contiguity from the strides
  } else {
    impl->set_sizes_and_strides(shape, steps);
  }
  return impl;
}

}  // namespace fxjit::inline v0::torch_
