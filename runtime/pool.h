/* Recycled memory for outputs and arenas. A fresh page costs 1 to 11 us, more than the kernel that fills it, so blocks
   are kept by size class and handed out again. Thread-safe; a block may be returned on any thread, in a fork child
   and during exit: the pool itself is never destroyed. */
#ifndef FXJIT_RUNTIME_POOL_H
#define FXJIT_RUNTIME_POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks of this size and above are mapped on a 2 MiB boundary with huge pages asked for. */
#define FXJIT_HUGE_BLOCK ((size_t)2 << 20)

typedef struct fxjit_block {
  void* data;      /* 64-byte aligned; 2 MiB aligned from FXJIT_HUGE_BLOCK on */
  size_t capacity; /* bytes, at least what was asked for */
} fxjit_block;

typedef struct fxjit_pool_statistics {
  uint64_t requests;     /* blocks that went through the shared lists (a thread's own small blocks are not counted) */
  uint64_t reused;       /* of these, how many were recycled */
  uint64_t live_bytes;   /* handed out, small blocks in threads' own lists included */
  uint64_t cached_bytes; /* waiting in the shared lists; never above the limit */
  uint64_t limit_bytes;
} fxjit_pool_statistics;

/* A block of at least `bytes` (0 counts as 1), contents undefined; NULL when the system has no memory. */
fxjit_block* fxjit_block_get(size_t bytes);

/* Gives a block back; NULL is ignored. Beyond the pool's limit the blocks unused for longest go to the system. */
void fxjit_block_put(fxjit_block* block);

/* The same with the signature of an allocator's deleter. */
void fxjit_block_delete(void* block);

/* Returns cached blocks, those unused for longest first, until at most `keep` bytes are cached; small blocks in the
   calling thread's own list go too. Returns the bytes given to the system. */
size_t fxjit_pool_trim(size_t keep);

/* Upper bound for cached (not live) bytes; default: the smaller of 1 GiB and an eighth of the machine's memory. */
void fxjit_pool_set_limit(size_t bytes);

void fxjit_pool_get_statistics(fxjit_pool_statistics* out);

/* The size class of a request: sizes in steps of a quarter of a power of two, so at most 25 % above it. */
size_t fxjit_block_capacity(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
