#include "runtime/frame.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/pool.h"

namespace {

constexpr size_t kKeptArena = size_t{1} << 20;
constexpr int kKeptFrames = 4;  // per thread; nesting deeper than this is rare

// What the host sees is `frame`; the rest is the pool's.
struct PooledFrame {
  fxjit_frame frame;
  fxjit_block* arena;
  size_t room;  // 8-byte words behind this struct: slots, then symbols
};

fxjit_value* words(PooledFrame* f) { return reinterpret_cast<fxjit_value*>(f + 1); }

void destroy(PooledFrame* f) {
  fxjit_block_put(f->arena);
  std::free(f);
}

struct FrameList {
  PooledFrame* kept[kKeptFrames];
  int count = 0;
  bool closed = false;  // the thread is ending: frames released by later destructors are freed
  ~FrameList() {
    while (count > 0) destroy(kept[--count]);
    closed = true;
  }
};

FrameList& this_thread() {
  static thread_local FrameList list;
  return list;
}

PooledFrame* create(size_t room) {
  void* memory = std::malloc(sizeof(PooledFrame) + room * sizeof(fxjit_value));
  if (!memory) return nullptr;
  auto* f = new (memory) PooledFrame{};
  f->room = room;
  return f;
}

}  // namespace

extern "C" {

fxjit_frame* fxjit_frame_acquire(int32_t slots, int32_t symbols) {
  size_t needed = static_cast<size_t>(slots) + static_cast<size_t>(symbols);
  FrameList& list = this_thread();
  PooledFrame* f = nullptr;
  for (int i = list.count - 1; i >= 0 && !f; --i) {
    if (list.kept[i]->room < needed) continue;
    f = list.kept[i];
    list.kept[i] = list.kept[--list.count];
  }
  if (!f) f = create(needed < 64 ? 64 : needed + needed / 4);
  if (!f) return nullptr;
  fxjit_frame& frame = f->frame;
  frame.table = nullptr;
  frame.program = nullptr;
  frame.error = nullptr;
  frame.parallel = nullptr;
  frame.threads = 1;
  frame.words = nullptr;
  frame.slots = words(f);
  frame.symbols = reinterpret_cast<int64_t*>(words(f) + slots);
  std::memset(frame.slots, 0, static_cast<size_t>(slots) * sizeof(fxjit_value));
  return &frame;
}

void fxjit_frame_release(fxjit_frame* frame) {
  auto* f = reinterpret_cast<PooledFrame*>(frame);
  if (f->arena && f->arena->capacity > kKeptArena) {
    fxjit_block_put(f->arena);
    f->arena = nullptr;
    frame->arena = nullptr;
    frame->arena_bytes = 0;
  }
  FrameList& list = this_thread();
  if (list.closed || list.count == kKeptFrames) {
    destroy(f);
  } else {
    list.kept[list.count++] = f;
  }
}

fxjit_status fxjit_arena_reserve(fxjit_frame* frame, size_t bytes) {
  if (bytes <= frame->arena_bytes) return FXJIT_OK;
  auto* f = reinterpret_cast<PooledFrame*>(frame);
  fxjit_block* block = fxjit_block_get(bytes);
  if (!block) return FXJIT_NO_MEMORY;
  fxjit_block_put(f->arena);
  f->arena = block;
  frame->arena = static_cast<char*>(block->data);
  frame->arena_bytes = block->capacity;
  return FXJIT_OK;
}

}  // extern "C"
