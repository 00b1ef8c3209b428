// The shared part of strings and aggregates: a count of references and the payload behind it.
#pragma once

#include <atomic>

#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::fx::detail {

struct Block {
  std::atomic<uint32_t> refs;
  uint32_t size;   // characters, items, fields or entries
  uint32_t flags;  // whether nodes or objects are inside
  uint32_t unused;

  // The payload, uninitialised: characters; items; type and fields of a named tuple; keys and values of a dict.
  static Block* allocate(size_t count, size_t payload_bytes);
  void destroy(ArgumentKind kind) noexcept;
  char* chars() { return reinterpret_cast<char*>(this + 1); }
  Argument* items() { return reinterpret_cast<Argument*>(this + 1); }
};
static_assert(sizeof(Block) == 16 && sizeof(Argument) == 16 && alignof(Argument) <= alignof(std::max_align_t));

Argument adopt_block(ArgumentKind kind, Block* block) noexcept;
Block* block_of(const Argument& a) noexcept;
void set_flags(Block& block, size_t arguments) noexcept;

// map_arg into `a`, without a copy where nobody else holds it.
void map_nodes(Argument& a, FunctionRef<Argument(Node*)> fn);

// An aggregate of `count` Arguments as they lie in memory (2 for each entry of a dict; the type first for a named
// tuple), made by `item(i)`, which may throw. Without items there is no block.
template <class F>
Argument build(ArgumentKind kind, size_t count, F&& item) {
  if (count == 0) return adopt_block(kind, nullptr);
  const size_t size = kind == ArgumentKind::Dict ? count / 2 : kind == ArgumentKind::NamedTuple ? count - 1 : count;
  struct Guard {
    Block* block;
    size_t made = 0;
    ~Guard() {
      if (!block) return;
      for (size_t i = 0; i < made; ++i) block->items()[i].~Argument();
      ::operator delete(block);
    }
  } guard{Block::allocate(size, count * sizeof(Argument))};
  for (; guard.made < count; ++guard.made) new (guard.block->items() + guard.made) Argument(item(guard.made));
  set_flags(*guard.block, count);
  return adopt_block(kind, std::exchange(guard.block, nullptr));
}

}  // namespace fxjit::inline v0::fx::detail
