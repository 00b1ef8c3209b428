// Tensors of our own, for the specialised form of `forward` without torch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/forward/tensor_layout.h"
#include "fxjit/dtype.h"

namespace fxjit::test {

struct FakeStorage {
  int64_t padding = 0;
  void* data = nullptr;
};

struct FakeVersion {
  int64_t references = 1;
  uint32_t value = 0;
};

// Fields in another order than torch's, and only three sizes inline.
struct FakeTensor {
  static inline int live = 0;
  int64_t references = 1;
  uint64_t key_set = 0x8001;
  FakeStorage* storage = nullptr;
  int8_t device_type = 0;
  int8_t device_index = -1;
  uint16_t dtype = 6;
  uint64_t rank = 0;
  union {
    int64_t inline_sizes[6];
    int64_t* outside;
  };
  int64_t storage_offset = 0;
  FakeVersion* version = nullptr;
  void* autograd = nullptr;
  // Ours, not the layout's.
  std::vector<char> memory;
  std::vector<int64_t> geometry;
  FakeStorage own_storage;
  FakeVersion own_version;

  FakeTensor(DType t, std::vector<int64_t> sizes, std::vector<int64_t> strides = {}) {
    ++live;
    dtype = static_cast<uint16_t>(t);
    rank = sizes.size();
    if (strides.empty()) {
      strides.assign(rank, 1);
      for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
    }
    int64_t numel = 1, last = 0;
    for (size_t i = 0; i < rank; ++i) {
      numel *= sizes[i];
      last += (sizes[i] - 1) * strides[i];
    }
    geometry = sizes;
    geometry.insert(geometry.end(), strides.begin(), strides.end());
    if (rank <= 3) {
      for (size_t i = 0; i < rank; ++i) {
        inline_sizes[i] = sizes[i];
        inline_sizes[3 + i] = strides[i];
      }
    } else {
      outside = geometry.data();
    }
    memory.resize(numel == 0 ? 0 : static_cast<size_t>(last + 1) * size_of(t));
    own_storage.data = memory.data();
    storage = &own_storage;
    version = &own_version;
  }
  ~FakeTensor() { --live; }
  FakeTensor(const FakeTensor&) = delete;

  template <class T>
  T* data() {
    return static_cast<T*>(storage->data) + storage_offset;
  }
  static codegen::TensorLayout layout();
};

inline codegen::TensorLayout FakeTensor::layout() {
  codegen::TensorLayout l;
  alignas(FakeTensor) char room[sizeof(FakeTensor)];
  auto* t = reinterpret_cast<FakeTensor*>(room);
  auto at = [&](const void* field) { return static_cast<int32_t>(static_cast<const char*>(field) - room); };
  l.storage = at(&t->storage);
  l.autograd_meta = at(&t->autograd);
  l.version_counter = at(&t->version);
  l.rank = at(&t->rank);
  l.inline_sizes = at(&t->inline_sizes);
  l.inline_rank = 3;
  l.storage_offset = at(&t->storage_offset);
  l.dtype = at(&t->dtype);
  l.device_type = at(&t->device_type);
  l.device_index = at(&t->device_index);
  l.key_set = at(&t->key_set);
  l.storage_data = offsetof(FakeStorage, data);
  l.version = offsetof(FakeVersion, value);
  return l;
}

using TensorPtr = std::unique_ptr<FakeTensor>;

}  // namespace fxjit::test
