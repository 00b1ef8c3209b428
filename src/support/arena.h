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
    const uintptr_t start = (next_ + alignment - 1) & ~(uintptr_t{alignment} - 1);
    if (start + bytes > end_) [[unlikely]]
      return allocate_in_new_chunk(bytes, alignment);
    next_ = start + bytes;
    return reinterpret_cast<void*>(start);
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
    bytes_ += size;
    next_ = reinterpret_cast<uintptr_t>(chunks_.back().get());
    end_ = next_ + size;
    return allocate(bytes, alignment);
  }

  std::vector<std::unique_ptr<char[]>> chunks_;
  uintptr_t next_ = 0, end_ = 0;
  size_t next_chunk_, bytes_ = 0;
};

}  // namespace fxjit::inline v0::support
