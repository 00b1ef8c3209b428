#include <cstring>
#include <new>
#include <unordered_map>

#include "fx/block.h"
#include "fxjit/fx/ownership.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using detail::Block;

namespace {

std::string_view kind_name(ArgumentKind kind) {
  constexpr std::string_view names[] = {"None",         "bool",       "int",  "float",  "DType", "Device",  "Layout",
                                        "MemoryFormat", "Ellipsis",   "Node", "Object", "str",   "complex", "list",
                                        "tuple",        "namedtuple", "dict", "slice",  "range"};
  return names[static_cast<size_t>(kind)];
}

}  // namespace

Block* Block::allocate(size_t count, size_t payload_bytes) {
  FXJIT_CHECK(count <= UINT32_MAX, "an aggregate of more than four billion items");
  void* memory = ::operator new(sizeof(Block) + payload_bytes);
  return new (memory) Block{{1}, static_cast<uint32_t>(count), 0, 0, 0};
}

void Block::destroy(ArgumentKind kind) noexcept {
  if (kind >= ArgumentKind::List) {
    const size_t n = cells(kind);
    for (size_t i = 0; i < n; ++i) items()[i].~Argument();
  }
  ::operator delete(this);
}

Argument::Argument(std::string_view s) : bits_(0), kind_(Kind::Str) {
  if (s.empty()) return;
  block_ = Block::allocate(s.size(), s.size());
  std::memcpy(block_->chars(), s.data(), s.size());
}

Argument::Argument(std::complex<double> v) : bits_(0), kind_(Kind::Complex) {
  block_ = Block::allocate(1, sizeof v);
  std::memcpy(block_->chars(), &v, sizeof v);
}

void Argument::retain() const noexcept {
  if (kind_ == Kind::Object) {
    object_->retain();
  } else if (block_) {
    block_->refs.fetch_add(1, std::memory_order_relaxed);
  }
}

void Argument::release() noexcept {
  if (kind_ == Kind::Object) {
    object_->release();
  } else if (block_ && block_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    block_->destroy(kind_);
  }
}

Argument Argument::make(Kind kind, std::span<const Argument> items) {
  return detail::build(kind, items.size(), [&](size_t i) -> const Argument& { return items[i]; });
}

Argument detail::adopt_block(ArgumentKind kind, Block* block) noexcept {
  Argument a(kind);
  a.block_ = block;
  return a;
}

Argument Argument::list(std::span<const Argument> items) { return make(Kind::List, items); }
Argument Argument::tuple(std::span<const Argument> items) { return make(Kind::Tuple, items); }

Argument Argument::named_tuple(ObjectRef type, std::span<const Argument> fields) {
  const Argument type_argument(std::move(type));
  if (!type_argument.is_object()) throw TypeError("a named tuple needs its type");
  return detail::build(Kind::NamedTuple, fields.size() + 1,
                       [&](size_t i) -> const Argument& { return i == 0 ? type_argument : fields[i - 1]; });
}

Argument Argument::slice(Argument start, Argument stop, Argument step) {
  const Argument items[] = {std::move(start), std::move(stop), std::move(step)};
  return make(Kind::Slice, items);
}

Argument Argument::range(Argument start, Argument stop, Argument step) {
  const Argument items[] = {std::move(start), std::move(stop), std::move(step)};
  return make(Kind::Range, items);
}

Argument Argument::dict(std::initializer_list<DictEntry> entries) {
  return dict(std::span(entries.begin(), entries.size()));
}

Argument Argument::dict(std::span<const DictEntry> entries) {
  if (entries.empty()) return Argument(Kind::Dict);
  std::vector<const DictEntry*> unique;  // the entry whose key is used, and the one whose value is
  std::vector<const Argument*> values;
  std::unordered_multimap<size_t, size_t> index;  // hash of key → place; only for large dicts
  const bool large = entries.size() > 8;
  for (const DictEntry& e : entries) {
    size_t place = unique.size();
    if (large) {
      const auto [first, last] = index.equal_range(e.key.hash());
      for (auto it = first; it != last; ++it) {
        if (unique[it->second]->key == e.key) place = it->second;
      }
      if (place == unique.size()) index.emplace(e.key.hash(), place);
    } else {
      for (size_t i = 0; i < unique.size(); ++i) {
        if (unique[i]->key == e.key) place = i;
      }
    }
    if (place == unique.size()) {
      unique.push_back(&e);
      values.push_back(&e.value);
    } else {
      values[place] = &e.value;
    }
  }
  return detail::build(Kind::Dict, 2 * unique.size(),
                       [&](size_t i) -> const Argument& { return i % 2 ? *values[i / 2] : unique[i / 2]->key; });
}

Argument Argument::rebuild(const Argument& like, std::span<const Argument> items) {
  if (like.size() != items.size()) throw ValueError("rebuild: another number of items");
  if (like.is(Kind::Dict)) {
    return detail::build(Kind::Dict, 2 * items.size(),
                         [&](size_t i) -> const Argument& { return i % 2 ? items[i / 2] : like.entries()[i / 2].key; });
  }
  if (like.is(Kind::NamedTuple)) return named_tuple(like.type_object(), items);
  return make(like.kind_, items);
}

std::complex<double> Argument::as_complex() const {
  expect(Kind::Complex);
  std::complex<double> v;
  std::memcpy(&v, block_->chars(), sizeof v);
  return v;
}

std::string_view Argument::as_str() const {
  expect(Kind::Str);
  return block_ ? std::string_view(block_->chars(), block_->size) : std::string_view();
}

double Argument::as_float() const {
  expect(Kind::Float);
  return float_;
}

fx::Object& Argument::as_object() const {
  expect(Kind::Object);
  return *object_;
}

fx::Device Argument::as_device() const {
  expect(Kind::Device);
  return {static_cast<int8_t>(bits_ & 0xff), static_cast<int8_t>(bits_ >> 8 & 0xff)};
}

fx::Layout Argument::as_layout() const {
  expect(Kind::Layout);
  return static_cast<fx::Layout>(bits_);
}

fx::MemoryFormat Argument::as_memory_format() const {
  expect(Kind::MemoryFormat);
  return static_cast<fx::MemoryFormat>(bits_);
}

double Argument::to_double() const {
  if (kind_ == Kind::Float) return float_;
  if (kind_ == Kind::Int) return static_cast<double>(int_);
  if (kind_ == Kind::Bool) return bits_ ? 1 : 0;
  throw TypeError("a number was expected, not " + repr());
}

std::span<const Argument> Argument::items() const {
  if (kind_ < Kind::List || kind_ == Kind::Dict) throw TypeError("a list or tuple was expected, not " + repr());
  if (!block_) return {};
  return {block_->items() + (kind_ == Kind::NamedTuple ? 1 : 0), block_->size};
}

std::span<const DictEntry> Argument::entries() const {
  expect(Kind::Dict);
  static_assert(sizeof(DictEntry) == 2 * sizeof(Argument));
  if (!block_) return {};
  return {reinterpret_cast<const DictEntry*>(block_->items()), block_->size};
}

size_t Argument::size() const { return kind_ == Kind::Dict ? entries().size() : items().size(); }

const Argument& Argument::operator[](size_t i) const {
  const auto all = items();
  if (i >= all.size()) {
    throw IndexError(support::concat(type_name(), " index out of range: ", i, " of ", all.size()));
  }
  return all[i];
}

const Argument* Argument::find(const Argument& key) const {
  for (const DictEntry& e : entries()) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

const ObjectRef Argument::type_object() const {
  expect(Kind::NamedTuple);
  return ObjectRef(&block_->items()[0].as_object());
}

bool Argument::contains_node() const noexcept { return detail::node_count(*this) > 0; }

bool Argument::contains_object() const noexcept {
  const Block* block = detail::items_block(*this);
  return is_object() || (block && block->objects);
}

void Argument::fail(Kind wanted) const {
  throw TypeError(
      support::concat("a value of kind ", kind_name(wanted), " was expected, not ", kind_name(kind_), " ", repr()));
}

bool Argument::equal(const Argument& o) const {
  if (kind_ != o.kind_) return false;
  if (bits_ == o.bits_) return true;
  switch (kind_) {
    case Kind::None:
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float:
    case Kind::DType:
    case Kind::Device:
    case Kind::Layout:
    case Kind::MemoryFormat:
    case Kind::Ellipsis:
    case Kind::Node:
      return false;
    case Kind::Object:
      return object_->equal(*o.object_);
    case Kind::Str:
      return as_str() == o.as_str();
    case Kind::Complex:
      return std::memcmp(block_->chars(), o.block_->chars(), sizeof(std::complex<double>)) == 0;
    case Kind::NamedTuple:
      if (!(block_->items()[0] == o.block_->items()[0])) return false;
      break;
    case Kind::Dict:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Slice:
    case Kind::Range:
      break;
  }
  const size_t n = block_ ? block_->size : 0, m = o.block_ ? o.block_->size : 0;
  if (n != m) return false;
  const Argument* a = n ? block_->items() : nullptr;
  const Argument* b = n ? o.block_->items() : nullptr;
  const size_t offset = kind_ == Kind::NamedTuple ? 1 : 0, count = kind_ == Kind::Dict ? 2 * n : n + offset;
  for (size_t i = offset; i < count; ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}

size_t Argument::hash() const {
  const auto mix = [](size_t seed, size_t v) { return (seed ^ v) * 0x9e3779b97f4a7c15u + (seed >> 29); };
  const size_t seed = mix(0x51ed270b, static_cast<size_t>(kind_));
  if (kind_ == Kind::Object) return mix(seed, object_->hash());
  if (kind_ == Kind::Str) return mix(seed, std::hash<std::string_view>()(as_str()));
  if (!shared()) return mix(seed, bits_);
  if (kind_ == Kind::Complex) {
    return mix(seed, std::hash<std::string_view>()({block_->chars(), sizeof(std::complex<double>)}));
  }
  if (!block_) return seed;
  const size_t count = block_->cells(kind_);
  size_t h = seed;
  for (size_t i = 0; i < count; ++i) h = mix(h, block_->items()[i].hash());
  return h;
}

bool is_sole_owner(const Argument& a) noexcept {
  if (const Object* o = a.object_or_null()) return o->use_count() == 1;
  if (!a.is_aggregate() && !a.is_str()) return true;
  const detail::Block* block = detail::block_of(a);
  return !block || block->refs.load(std::memory_order_relaxed) == 1;
}

}  // namespace fxjit::inline v0::fx
