// Size classes and the memory behind a block; the pool's own header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/pool.h"

namespace fxjit_pool {

// Class c holds blocks of (4 + c % 4) << (c / 4 + 4) bytes: 64, 80, 96, 112, 128, 160, …
inline constexpr int kClasses = 4 * 40;        // up to 7 << 43 bytes: more than an address space
inline constexpr int kThreadClasses = 4 * 10;  // up to 56 KiB go through the thread's own list
inline constexpr int kThreadDepth = 4;         // at most 4 blocks of each: 2 MiB a thread at the very worst

struct Block {
  fxjit_block shown;  // first: what the host holds is the address of it
  int32_t size_class;
  Block* class_next;  // same class, most recently used first
  Block* class_prev;
  Block* newer;  // all cached blocks by time of return
  Block* older;
};

// -1 where no class is large enough.
int class_of(size_t bytes);
size_t class_bytes(int size_class);

// nullptr when the system has no memory.
Block* allocate_block(int size_class);
void free_block(Block* b);

// Capacity of all blocks that exist, cached or not.
size_t allocated_bytes();

}  // namespace fxjit_pool
