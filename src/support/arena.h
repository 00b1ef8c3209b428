// Bump allocation: what is made here dies with the arena. No destructors are run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace fxjit::inline v0::support {

class Arena {
 public:
  explicit Arena(size_t first_chunk = 4096) : next_chunk_(first_chunk) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t bytes, size_t alignment) {
    const size_t start = (used_ + alignment - 1) & ~(alignment - 1);
    if (start + bytes > capacity_) [[unlikely]]
      return allocate_in_new_chunk(bytes, alignment);
    used_ = start + bytes;
    return base_ + start;
  }
  template <class T>
  T* allocate_array(size_t n) {
    return static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
  }
  std::string_view copy(std::string_view s) {
    char* p = allocate_array<char>(s.size());
    if (!s.empty()) std::memcpy(p, s.data(), s.size());
    return {p, s.size()};
  }
  size_t bytes() const { return bytes_; }  // reserved

 private:
  // Chunks double up to 1 MiB: small graphs stay small, large ones make few allocations.
  void* allocate_in_new_chunk(size_t bytes, size_t alignment) {
    const size_t size = std::max(next_chunk_, bytes + alignment);
    if (next_chunk_ < (size_t{1} << 20)) next_chunk_ *= 2;
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    base_ = chunks_.back().get();
    capacity_ = size;
    bytes_ += size;
    const size_t misalignment = reinterpret_cast<uintptr_t>(base_) & (alignment - 1);
    const size_t start = misalignment ? alignment - misalignment : 0;
    used_ = start + bytes;
    return base_ + start;
  }

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* base_ = nullptr;
  size_t used_ = 0, capacity_ = 0, next_chunk_, bytes_ = 0;
};

}  // namespace fxjit::inline v0::support
