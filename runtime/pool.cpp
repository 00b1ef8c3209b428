#include "runtime/pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "runtime/pool_blocks.h"

namespace fxjit_pool {
namespace {

size_t default_limit() {
  uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min<uint64_t>(uint64_t{1} << 30, memory / 8);
}

// The lists that threads share. One mutex: a block of more than kThreadBytes is worth far more than its 20 ns.
class Shared {
 public:
  Shared() : limit_(default_limit()) {
    pthread_atfork([] { shared().mutex_.lock(); }, [] { shared().mutex_.unlock(); }, [] { shared().mutex_.unlock(); });
  }

  // Leaked on purpose: tensors that outlive every destructor return their blocks here.
  static Shared& shared() {
    static Shared* instance = new Shared;
    return *instance;
  }

  Block* get(int size_class) {
    {
      std::lock_guard lock(mutex_);
      ++requests_;
      if (Block* b = by_class_[size_class].head) {
        ++reused_;
        unlink(b);
        return b;
      }
    }
    Block* b = allocate_block(size_class);
    if (b) return b;
    trim(0);  // what other sizes hold may be what is missing
    return allocate_block(size_class);
  }

  void put(Block* b) {
    size_t kept;
    {
      std::lock_guard lock(mutex_);
      link(b);
      if (cached_ <= limit_) return;
      kept = limit_;
    }
    trim(kept);
  }

  size_t trim(size_t keep) {
    Block* victims = nullptr;
    size_t freed = 0;
    {
      std::lock_guard lock(mutex_);
      while (cached_ > keep) {
        Block* b = oldest_;
        unlink(b);
        freed += b->shown.capacity;
        b->class_next = victims;
        victims = b;
      }
    }
    while (victims) {  // munmap of a large block takes longer than a lock should be held
      Block* next = victims->class_next;
      free_block(victims);
      victims = next;
    }
    return freed;
  }

  void set_limit(size_t bytes) {
    {
      std::lock_guard lock(mutex_);
      limit_ = bytes;
    }
    trim(bytes);
  }

  void statistics(fxjit_pool_statistics* out) {
    std::lock_guard lock(mutex_);
    out->requests = requests_;
    out->reused = reused_;
    out->cached_bytes = cached_;
    out->limit_bytes = limit_;
    out->live_bytes = allocated_bytes() - cached_;
  }

 private:
  void link(Block* b) {
    List& list = by_class_[b->size_class];
    b->class_prev = nullptr;
    b->class_next = list.head;
    if (list.head) list.head->class_prev = b;
    list.head = b;
    b->newer = nullptr;
    b->older = newest_;
    (newest_ ? newest_->newer : oldest_) = b;
    newest_ = b;
    cached_ += b->shown.capacity;
  }

  void unlink(Block* b) {
    (b->class_prev ? b->class_prev->class_next : by_class_[b->size_class].head) = b->class_next;
    if (b->class_next) b->class_next->class_prev = b->class_prev;
    (b->newer ? b->newer->older : newest_) = b->older;
    (b->older ? b->older->newer : oldest_) = b->newer;
    cached_ -= b->shown.capacity;
  }

  struct List {
    Block* head = nullptr;
  };

  std::mutex mutex_;
  List by_class_[kClasses];
  Block* newest_ = nullptr;
  Block* oldest_ = nullptr;
  size_t cached_ = 0;
  size_t limit_;
  uint64_t requests_ = 0;
  uint64_t reused_ = 0;
};

// A few small blocks of each class per thread, so that a small call takes no lock (10 ns instead of 40 for the pair).
struct ThreadBlocks {
  Block* kept[kThreadClasses][kThreadDepth];
  uint8_t count[kThreadClasses] = {};
  bool closed = false;  // set when the thread's destructors have run: later blocks go to the shared lists

  size_t flush() {
    size_t bytes = 0;
    for (int c = 0; c < kThreadClasses; ++c) {
      while (count[c] > 0) {
        Block* b = kept[c][--count[c]];
        bytes += b->shown.capacity;
        Shared::shared().put(b);
      }
    }
    return bytes;
  }

  ~ThreadBlocks() {
    flush();
    closed = true;
  }
};

ThreadBlocks& this_thread() {
  static thread_local ThreadBlocks blocks;
  return blocks;
}

}  // namespace
}  // namespace fxjit_pool

using fxjit_pool::Block;
using fxjit_pool::Shared;

extern "C" {

fxjit_block* fxjit_block_get(size_t bytes) {
  int size_class = fxjit_pool::class_of(bytes);
  if (size_class < 0) return nullptr;
  if (size_class < fxjit_pool::kThreadClasses) {
    auto& mine = fxjit_pool::this_thread();
    if (mine.count[size_class] > 0) return &mine.kept[size_class][--mine.count[size_class]]->shown;
  }
  Block* b = Shared::shared().get(size_class);
  return b ? &b->shown : nullptr;
}

void fxjit_block_put(fxjit_block* block) {
  if (!block) return;
  auto* b = reinterpret_cast<Block*>(block);
  if (b->size_class < fxjit_pool::kThreadClasses) {
    auto& mine = fxjit_pool::this_thread();
    uint8_t& count = mine.count[b->size_class];
    if (!mine.closed && count < fxjit_pool::kThreadDepth) {
      mine.kept[b->size_class][count++] = b;
      return;
    }
  }
  Shared::shared().put(b);
}

void fxjit_block_delete(void* block) { fxjit_block_put(static_cast<fxjit_block*>(block)); }

size_t fxjit_pool_trim(size_t keep) {
  fxjit_pool::this_thread().flush();
  return Shared::shared().trim(keep);
}

void fxjit_pool_set_limit(size_t bytes) { Shared::shared().set_limit(bytes); }

void fxjit_pool_get_statistics(fxjit_pool_statistics* out) { Shared::shared().statistics(out); }

size_t fxjit_block_capacity(size_t bytes) {
  int size_class = fxjit_pool::class_of(bytes);
  return size_class < 0 ? 0 : fxjit_pool::class_bytes(size_class);
}

}  // extern "C"
