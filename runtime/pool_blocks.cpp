#include "runtime/pool_blocks.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <new>

namespace fxjit_pool {
namespace {

std::atomic<size_t> allocated{0};

// A mapping whose start is a multiple of 2 MiB, so that the kernel can back it with huge pages from the first byte.
void* map_huge(size_t bytes) {
  constexpr size_t kHuge = FXJIT_HUGE_BLOCK;
  size_t whole = bytes + kHuge;
  void* raw = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = reinterpret_cast<uintptr_t>(raw);
  uintptr_t aligned = (start + kHuge - 1) & ~(kHuge - 1);
  if (aligned > start) munmap(raw, aligned - start);
  size_t tail = start + whole - (aligned + bytes);
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  auto* data = reinterpret_cast<void*>(aligned);
  madvise(data, bytes, MADV_HUGEPAGE);  // advice: where it is refused, small pages serve
  return data;
}

}  // namespace

int class_of(size_t bytes) {
  if (bytes <= 64) return 0;
  // With n = bytes - 1 and h its highest bit: the two bits below h choose the quarter, rounded up by the + 1.
  size_t n = bytes - 1;
  int h = std::bit_width(n) - 1;
  int size_class = 4 * (h - 6) + static_cast<int>((n >> (h - 2)) & 3) + 1;
  return size_class < kClasses ? size_class : -1;
}

size_t class_bytes(int size_class) { return static_cast<size_t>(4 + size_class % 4) << (size_class / 4 + 4); }

Block* allocate_block(int size_class) {
  size_t bytes = class_bytes(size_class);
  auto* b = new (std::nothrow) Block{};
  if (!b) return nullptr;
  // Below the 64-byte classes' step, sizes such as 80 are no multiple of the alignment: aligned_alloc wants one.
  void* data = bytes >= FXJIT_HUGE_BLOCK ? map_huge(bytes) : std::aligned_alloc(64, (bytes + 63) & ~size_t{63});
  if (!data) {
    delete b;
    return nullptr;
  }
  b->shown = {data, bytes};
  b->size_class = size_class;
  allocated.fetch_add(bytes, std::memory_order_relaxed);
  return b;
}

void free_block(Block* b) {
  allocated.fetch_sub(b->shown.capacity, std::memory_order_relaxed);
  if (b->shown.capacity >= FXJIT_HUGE_BLOCK) {
    munmap(b->shown.data, b->shown.capacity);
  } else {
    std::free(b->shown.data);
  }
  delete b;
}

size_t allocated_bytes() { return allocated.load(std::memory_order_relaxed); }

}  // namespace fxjit_pool
