#include "torch/layout.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace fxjit::inline v0::torch_ {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Winvalid-offsetof"  // TensorImpl has a vtable; g++ and clang give the offset all the same

// Protected members are visible to a derived class.
struct Fields : c10::TensorImpl {
  static codegen::TensorLayout layout() {
    codegen::TensorLayout l;
    l.storage = offsetof(Fields, storage_);
    // autograd_meta_ is private: it lies between storage_ (one pointer) and extra_meta_, which check_layout proves.
    l.autograd_meta = l.storage + static_cast<int32_t>(sizeof(c10::Storage));
    l.version_counter = offsetof(Fields, version_counter_);
    l.rank = offsetof(Fields, sizes_and_strides_);
    l.inline_sizes = l.rank + static_cast<int32_t>(sizeof(size_t));
    l.inline_rank = C10_SIZES_AND_STRIDES_MAX_INLINE_SIZE;
    l.storage_offset = offsetof(Fields, storage_offset_);
    l.numel = offsetof(Fields, numel_);
    l.dtype = offsetof(Fields, data_type_);
    l.device_type = offsetof(Fields, device_opt_);
    l.device_index = l.device_type + 1;
    l.key_set = offsetof(Fields, key_set_);
    // StorageImpl begins with its base class, then DataPtr, which begins with the data pointer.
    l.storage_data = static_cast<int32_t>(sizeof(c10::intrusive_ptr_target));
    l.version = static_cast<int32_t>(sizeof(c10::intrusive_ptr_target));
    return l;
  }
};
#pragma GCC diagnostic pop

template <class T>
T read(const void* base, int32_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof(T));
  return value;
}

#define FXJIT_SAME(field, actual, expected) \
  if ((actual) != (expected)) return std::string("torch keeps ") + field + " of a tensor where fxjit does not expect it"

std::string check_tensor(const codegen::TensorLayout& l, const at::Tensor& t) {
  const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
  auto rank = static_cast<int32_t>(t.dim());
  FXJIT_SAME("the rank", read<uint64_t>(impl, l.rank), static_cast<uint64_t>(rank));
  const int64_t* sizes;
  const int64_t* strides;
  if (rank <= l.inline_rank) {
    sizes = reinterpret_cast<const int64_t*>(reinterpret_cast<const char*>(impl) + l.inline_sizes);
    strides = sizes + l.inline_rank;
  } else {
    sizes = read<const int64_t*>(impl, l.inline_sizes);
    strides = sizes + rank;
  }
  // Addresses are compared before anything is read through them.
  FXJIT_SAME("the sizes", sizes, impl->sizes().data());
  FXJIT_SAME("the strides", strides, impl->strides().data());
  FXJIT_SAME("the element count", read<int64_t>(impl, l.numel), t.numel());
  FXJIT_SAME("the storage offset", read<int64_t>(impl, l.storage_offset), t.storage_offset());
  FXJIT_SAME("the element type", read<uint16_t>(impl, l.dtype), static_cast<uint16_t>(t.scalar_type()));
  FXJIT_SAME("the device", read<int8_t>(impl, l.device_type), static_cast<int8_t>(t.device().type()));
  FXJIT_SAME("the device index", read<int8_t>(impl, l.device_index), t.device().index());
  FXJIT_SAME("the dispatch keys", read<uint64_t>(impl, l.key_set), impl->key_set().raw_repr());
  const auto* storage = read<const c10::StorageImpl*>(impl, l.storage);
  FXJIT_SAME("the storage", storage, impl->unsafe_storage().unsafeGetStorageImpl());
  FXJIT_SAME("the data pointer", read<const void*>(storage, l.storage_data), t.storage().data());
  bool has_meta = read<const void*>(impl, l.autograd_meta) != nullptr;
  FXJIT_SAME("the gradient flag", has_meta, t.requires_grad());
  const auto* counter = read<const char*>(impl, l.version_counter);
  FXJIT_SAME("the version counter", counter != nullptr, impl->version_counter().enabled());
  if (counter) FXJIT_SAME("the version", read<uint32_t>(counter, l.version), impl->version_counter().current_version());
  return "";
}
#undef FXJIT_SAME

at::Tensor sample(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset, c10::ScalarType dtype) {
  int64_t room = offset + 1;
  for (size_t i = 0; i < sizes.size(); ++i) room += (sizes[i] - 1) * strides[i];
  at::Tensor t = at::detail::empty_cpu({room}, dtype, false);
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return t;
}

}  // namespace

std::string check_layout(const codegen::TensorLayout& layout) {
  std::vector<at::Tensor> samples = {
      sample({}, {}, 0, c10::ScalarType::Double),
      sample({3, 5}, {1, 3}, 2, c10::ScalarType::Float),
      sample({2, 3, 4, 5, 7}, {420, 140, 35, 7, 1}, 11, c10::ScalarType::Half),
      sample({2, 1, 3, 1, 2, 1}, {6, 6, 2, 2, 1, 1}, 1, c10::ScalarType::Bool),
  };
  samples.push_back(at::detail::empty_meta({2, 3}, c10::ScalarType::Long));  // a device that is not 0
  samples[1].unsafeGetTensorImpl()->bump_version();
  samples[1].unsafeGetTensorImpl()->bump_version();
  samples[0].set_requires_grad(true);
  for (const at::Tensor& t : samples)
    if (std::string problem = check_tensor(layout, t); !problem.empty()) return problem;
  return "";
}

const LayoutCheck& tensor_layout() {
  static const LayoutCheck check = [] {
    LayoutCheck c{Fields::layout(), ""};
    c.problem = check_layout(c.layout);
    return c;
  }();
  return check;
}

}  // namespace fxjit::inline v0::torch_
