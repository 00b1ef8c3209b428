// The values of node arguments: constants, nodes, foreign objects, and immutable aggregates of these. 16 bytes, cheap
// to copy: aggregates and strings are shared. `Value` is the same type where no node can occur, as in the interpreter.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/api.h"
#include "fxjit/function_ref.h"
#include "fxjit/fx/object.h"
#include "fxjit/fx/types.h"

namespace fxjit::inline v0::fx {

class Node;
class Argument;
struct DictEntry;
using Value = Argument;

namespace detail {
struct Block;  // the shared part of an aggregate or a string
Argument adopt_block(ArgumentKind kind, Block* block) noexcept;
Block* block_of(const Argument& a) noexcept;
Block* items_block(const Argument& a) noexcept;
}  // namespace detail

// Specialise for types of other floors: `static Argument convert(const T&)`.
template <class T>
struct ArgumentTraits;

template <class T>
concept HasArgumentTraits = requires(const T& v) { ArgumentTraits<T>::convert(v); };

class FXJIT_API Argument {
 public:
  using Kind = ArgumentKind;

  // Conversions are implicit: whatever a graph can hold may be written where an argument is taken.
  Argument() noexcept : bits_(0), kind_(Kind::None) {}
  Argument(std::nullptr_t) noexcept : Argument() {}
  template <std::same_as<bool> T>
  Argument(T v) noexcept : bits_(v ? 1 : 0), kind_(Kind::Bool) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Argument(T v) noexcept : int_(static_cast<int64_t>(v)), kind_(Kind::Int) {}
  template <std::floating_point T>
  Argument(T v) noexcept : float_(static_cast<double>(v)), kind_(Kind::Float) {}
  Argument(std::complex<double> v);
  Argument(const char* s) : Argument(std::string_view(s)) {}
  Argument(const std::string& s) : Argument(std::string_view(s)) {}
  Argument(std::string_view s);
  Argument(fxjit::DType v) noexcept : bits_(static_cast<uint64_t>(v)), kind_(Kind::DType) {}
  Argument(fx::Device v) noexcept : bits_(device_bits(v)), kind_(Kind::Device) {}
  Argument(fx::Layout v) noexcept : bits_(static_cast<uint64_t>(v)), kind_(Kind::Layout) {}
  Argument(fx::MemoryFormat v) noexcept : bits_(static_cast<uint64_t>(v)), kind_(Kind::MemoryFormat) {}
  Argument(fx::Node* n) noexcept : node_(n), kind_(n ? Kind::Node : Kind::None) {}
  template <std::derived_from<fx::Object> T>
  Argument(Ref<T> o) noexcept : object_(o.detach()), kind_(object_ ? Kind::Object : Kind::None) {}
  template <HasArgumentTraits T>
  Argument(const T& v) : Argument(ArgumentTraits<T>::convert(v)) {}

  Argument(const Argument& o) noexcept : bits_(o.bits_), kind_(o.kind_) {
    if (shared()) retain();
  }
  Argument(Argument&& o) noexcept : bits_(o.bits_), kind_(o.kind_) {
    o.kind_ = Kind::None;
    o.bits_ = 0;
  }
  ~Argument() {
    if (shared()) release();
  }
  Argument& operator=(Argument o) noexcept {
    swap(o);
    return *this;
  }
  void swap(Argument& o) noexcept {
    std::swap(bits_, o.bits_);
    std::swap(kind_, o.kind_);
  }

  static Argument ellipsis() noexcept { return Argument(Kind::Ellipsis); }
  static Argument list(std::span<const Argument> items);
  static Argument list(std::initializer_list<Argument> items) { return list(std::span(items.begin(), items.size())); }
  static Argument tuple(std::span<const Argument> items);
  static Argument tuple(std::initializer_list<Argument> items) { return tuple(std::span(items.begin(), items.size())); }
  // `type` is the callable that makes such a tuple of its fields.
  static Argument named_tuple(ObjectRef type, std::span<const Argument> fields);
  // A later entry with an equal key replaces the value of the earlier one, as in Python.
  static Argument dict(std::span<const DictEntry> entries);
  static Argument dict(std::initializer_list<DictEntry> entries);
  static Argument slice(Argument start, Argument stop, Argument step = {});
  static Argument range(Argument start, Argument stop, Argument step = 1);
  // An aggregate like `like` (same kind, same type object) with these items; for a Dict `items` are its values.
  static Argument rebuild(const Argument& like, std::span<const Argument> items);

  Kind kind() const noexcept { return kind_; }
  bool is(Kind k) const noexcept { return kind_ == k; }
  bool is_none() const noexcept { return kind_ == Kind::None; }
  bool is_bool() const noexcept { return kind_ == Kind::Bool; }
  bool is_int() const noexcept { return kind_ == Kind::Int; }
  bool is_float() const noexcept { return kind_ == Kind::Float; }
  bool is_str() const noexcept { return kind_ == Kind::Str; }
  bool is_node() const noexcept { return kind_ == Kind::Node; }
  bool is_object() const noexcept { return kind_ == Kind::Object; }
  bool is_aggregate() const noexcept { return kind_ >= Kind::List; }

  // These throw TypeError when the kind is another one.
  bool as_bool() const {
    expect(Kind::Bool);
    return bits_ != 0;
  }
  int64_t as_int() const {
    expect(Kind::Int);
    return int_;
  }
  double as_float() const;
  std::complex<double> as_complex() const;
  std::string_view as_str() const;
  fxjit::DType as_dtype() const {
    expect(Kind::DType);
    return static_cast<fxjit::DType>(bits_);
  }
  fx::Device as_device() const;
  fx::Layout as_layout() const;
  fx::MemoryFormat as_memory_format() const;
  fx::Node* as_node() const {
    expect(Kind::Node);
    return node_;
  }
  fx::Object& as_object() const;
  // Null where the kind is another one.
  fx::Node* node_or_null() const noexcept { return kind_ == Kind::Node ? node_ : nullptr; }
  fx::Object* object_or_null() const noexcept { return kind_ == Kind::Object ? object_ : nullptr; }
  // Bool, Int or Float as a double.
  double to_double() const;

  // Items of a List, Tuple or NamedTuple; start, stop, step of a Slice or Range. TypeError for other kinds.
  std::span<const Argument> items() const;
  std::span<const DictEntry> entries() const;  // of a Dict, in insertion order
  size_t size() const;                         // number of items or entries
  const Argument& operator[](size_t i) const;  // IndexError when out of range
  // The value of a Dict's key, or null. Linear for small dicts and for large ones: arguments are small.
  const Argument* find(const Argument& key) const;
  const ObjectRef type_object() const;  // of a NamedTuple
  // True if a node (an object) occurs anywhere inside; constant time.
  bool contains_node() const noexcept;
  bool contains_object() const noexcept;

  // Structural and strict: 1, 1.0 and True differ, as do 0.0 and -0.0; NaNs of equal bits are equal.
  friend bool operator==(const Argument& a, const Argument& b) { return a.equal(b); }
  size_t hash() const;

  // As torch.fx prints an argument of a node: nodes as %name, strings bare.
  std::string to_string() const;
  // As Python's repr(): nodes as name, strings quoted.
  std::string repr() const;
  // The Python class of the value: "int", "tuple", "torch.dtype".
  std::string type_name() const;

 private:
  friend Argument detail::adopt_block(Kind kind, detail::Block* block) noexcept;
  friend detail::Block* detail::block_of(const Argument& a) noexcept;
  friend detail::Block* detail::items_block(const Argument& a) noexcept;
  bool shared() const noexcept { return kind_ >= Kind::Object; }
  void retain() const noexcept;
  void release() noexcept;
  void expect(Kind k) const {
    if (kind_ != k) fail(k);
  }
  [[noreturn]] void fail(Kind wanted) const;
  bool equal(const Argument& o) const;
  explicit Argument(Kind kind) noexcept : bits_(0), kind_(kind) {}
  static uint64_t device_bits(fx::Device d) {
    return static_cast<uint8_t>(d.type) | static_cast<uint64_t>(static_cast<uint8_t>(d.index)) << 8;
  }
  static Argument make(Kind kind, std::span<const Argument> items);

  union {
    uint64_t bits_;
    int64_t int_;
    double float_;
    fx::Node* node_;
    fx::Object* object_;
    detail::Block* block_;
  };
  Kind kind_;
};

static_assert(sizeof(Argument) == 16, "arguments are copied by the million");

}  // namespace fxjit::inline v0::fx

#include "fxjit/fx/map_arg.h"
