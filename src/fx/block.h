// The shared part of strings and aggregates: a count of references and the payload behind it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "fxjit/errors.h"
#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::fx::detail {

// Of aggregates in one another. Arguments are walked, and released, by recursion.
inline constexpr uint16_t kMaxDepth = 1000;

struct Block {
  std::atomic<uint32_t> refs;
  uint32_t size;     // characters, items, fields or entries
  uint32_t nodes;    // how often nodes occur inside, at any depth
  uint16_t objects;  // whether objects do
  uint16_t depth;    // of aggregates in aggregates

  // The payload, uninitialised: characters; items; type and fields of a named tuple; keys and values of a dict.
  static Block* allocate(size_t count, size_t payload_bytes);
  void destroy(ArgumentKind kind) noexcept;
  char* chars() { return reinterpret_cast<char*>(this + 1); }
  Argument* items() { return reinterpret_cast<Argument*>(this + 1); }
  // How many Arguments lie here.
  size_t cells(ArgumentKind kind) const {
    return kind == ArgumentKind::Dict ? 2u * size : kind == ArgumentKind::NamedTuple ? size + 1u : size;
  }
  void count(const Argument& item) noexcept;
};
static_assert(sizeof(Block) == 16 && sizeof(Argument) == 16 && alignof(Argument) <= alignof(std::max_align_t));

Argument adopt_block(ArgumentKind kind, Block* block) noexcept;
inline Block* block_of(const Argument& a) noexcept { return a.is_object() ? nullptr : a.block_; }
// Of an aggregate with items, or null.
inline Block* items_block(const Argument& a) noexcept { return a.is_aggregate() ? a.block_ : nullptr; }

inline uint32_t node_count(const Argument& a) noexcept {
  if (a.is_node()) return 1;
  const Block* block = items_block(a);
  return block ? block->nodes : 0;
}

inline void Block::count(const Argument& item) noexcept {
  nodes = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{nodes} + node_count(item), UINT32_MAX));
  const Block* block = items_block(item);
  objects |= item.is_object() || (block && block->objects);
  if (block) depth = std::max<uint16_t>(depth, std::min<uint16_t>(block->depth, kMaxDepth) + 1);
}

// for_each_node, for callers that are worth the code.
template <class F>
void visit_nodes(const Argument& a, F&& visit) {
  if (a.is_node()) return visit(a.node_or_null());
  Block* block = items_block(a);
  if (!block || block->nodes == 0) return;
  const size_t n = block->cells(a.kind());
  for (size_t i = 0; i < n; ++i) visit_nodes(block->items()[i], visit);
}

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
  for (; guard.made < count; ++guard.made) {
    guard.block->count(*new (guard.block->items() + guard.made) Argument(item(guard.made)));
  }
  if (guard.block->depth > kMaxDepth) {
    throw ValueError("an argument is nested deeper than " + std::to_string(kMaxDepth));
  }
  return adopt_block(kind, std::exchange(guard.block, nullptr));
}

}  // namespace fxjit::inline v0::fx::detail
