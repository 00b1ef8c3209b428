#include "fx/block.h"

namespace fxjit::inline v0::fx {

using Kind = ArgumentKind;

namespace {

size_t cells(const Argument& a) {
  const detail::Block* block = detail::items_block(a);
  return block ? block->cells(a.kind()) : 0;
}

// Whether the Argument at `i` is part of the structure rather than a value: keys of dicts, the type of a named tuple.
bool is_structure(Kind kind, size_t i) { return kind == Kind::Dict ? i % 2 == 0 : kind == Kind::NamedTuple && i == 0; }

template <class F>
Argument map_cells(const Argument& a, F&& map) {
  const Argument* from = cells(a) ? detail::block_of(a)->items() : nullptr;
  return detail::build(a.kind(), cells(a),
                       [&](size_t i) { return is_structure(a.kind(), i) ? from[i] : map(from[i]); });
}

template <class F>
void for_each_cell(const Argument& a, F&& visit) {
  const size_t n = cells(a);
  const Argument* from = n ? detail::block_of(a)->items() : nullptr;
  for (size_t i = 0; i < n; ++i) visit(from[i]);
}

}  // namespace

Argument map_arg(const Argument& a, FunctionRef<Argument(Node*)> fn) {
  if (a.is_node()) return fn(a.as_node());
  if (detail::node_count(a) == 0) return a;
  return map_cells(a, [&](const Argument& item) { return map_arg(item, fn); });
}

void detail::map_nodes(Argument& a, FunctionRef<Argument(Node*)> fn) {
  if (node_count(a) == 0) return;
  Block* block = items_block(a);
  if (!block || block->refs.load(std::memory_order_acquire) != 1) {
    a = map_arg(a, fn);
    return;
  }
  const size_t n = cells(a);
  block->nodes = block->objects = block->depth = 0;
  for (size_t i = 0; i < n; ++i) {
    Argument& item = block->items()[i];
    if (!is_structure(a.kind(), i)) map_nodes(item, fn);
    block->count(item);
  }
}

Argument map_aggregate(const Argument& a, FunctionRef<Argument(const Argument&)> fn) {
  if (!a.is_aggregate()) return fn(a);
  return map_cells(a, [&](const Argument& item) { return map_aggregate(item, fn); });
}

void for_each_node(const Argument& a, FunctionRef<void(Node*)> fn) { detail::visit_nodes(a, fn); }

void traverse(const Argument& a, ObjectVisitor& visitor) {
  if (!a.contains_object()) return;
  if (a.is_object()) return visitor.object(a.as_object());
  for_each_cell(a, [&](const Argument& item) { traverse(item, visitor); });
}

}  // namespace fxjit::inline v0::fx
