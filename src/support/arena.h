// Bump allocation: what is made here dies with the arena. No destructors are run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

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
  // Chunks double up to the size of a huge page: small graphs stay small, large ones make few allocations, and where
  // the system has huge pages one page fault does for 2 MiB. First touches of small pages took half of the time of
  // tracing.
  static constexpr size_t kHuge = size_t{2} << 20;

  struct Delete {
    std::align_val_t alignment;
    void operator()(char* p) const { ::operator delete(p, alignment); }
  };
  using Chunk = std::unique_ptr<char[], Delete>;

  static Chunk make_chunk(size_t size) {
    const bool huge = size % kHuge == 0;
    const std::align_val_t alignment{huge ? kHuge : alignof(std::max_align_t)};
    Chunk chunk(static_cast<char*>(::operator new(size, alignment)), Delete{alignment});
#if defined(__linux__)
    if (huge) madvise(chunk.get(), size, MADV_HUGEPAGE);  // a wish: nothing depends on it
#endif
    return chunk;
  }

  void* allocate_in_new_chunk(size_t bytes, size_t alignment) {
    size_t size = next_chunk_;
    if (bytes + alignment > size) size = bytes + alignment;
    if (next_chunk_ < kHuge) next_chunk_ *= 2;
    chunks_.push_back(make_chunk(size));
    bytes_ += size;
    next_ = reinterpret_cast<uintptr_t>(chunks_.back().get());
    end_ = next_ + size;
    return allocate(bytes, alignment);
  }

  std::vector<Chunk> chunks_;
  uintptr_t next_ = 0, end_ = 0;
  size_t next_chunk_, bytes_ = 0;
};

}  // namespace fxjit::inline v0::support
