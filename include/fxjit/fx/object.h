// Foreign values: tensors, modules, callables, Python objects. The fx floor carries them without knowing what they are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fxjit/api.h"

namespace fxjit::inline v0::fx {

class Object;

enum class ObjectKind : uint8_t {
  Tensor,
  Parameter,  // a tensor that is a parameter of some module
  Module,
  Callable,
  Foreign,  // anything else, e.g. a Python object
};

// Walks what an Object owns, for cycle collectors.
class FXJIT_API ObjectVisitor {
 public:
  virtual ~ObjectVisitor();
  virtual void object(const Object& o) = 0;
  // A reference that belongs to another runtime, e.g. a PyObject*.
  virtual void foreign(void* reference) { (void)reference; }
};

// Reference counted (atomically: snapshots of a graph are shared between threads), held through Ref.
class FXJIT_API Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object();

  virtual ObjectKind object_kind() const { return ObjectKind::Foreign; }
  // The class as Python would name it, for messages: "torch.Tensor".
  virtual std::string type_name() const = 0;

  // What the handle stands for: two handles of one tensor have one identity.
  virtual const void* identity() const { return this; }
  virtual size_t hash() const;
  virtual bool equal(const Object& other) const { return identity() == other.identity(); }
  // Whether a graph may hold it as a constant argument; other objects become get_attr nodes or are refused.
  virtual bool is_constant() const { return false; }
  // str() of the value, as it appears in a printed graph, and its repr(), as it appears inside a container there.
  virtual void print(std::string& out) const;
  virtual void print_repr(std::string& out) const { print(out); }
  // Visits what this object owns, each reference once.
  virtual void traverse(ObjectVisitor& visitor) const { (void)visitor; }

  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  uint32_t use_count() const noexcept { return refs_.load(std::memory_order_relaxed); }

 protected:
  virtual void destroy() const noexcept { delete this; }

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

// Intrusive pointer to an Object.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}  // NOLINT
  Ref(T* p) noexcept : p_(p) {
    if (p_) p_->retain();
  }  // NOLINT: an Object knows its own count
  Ref(const Ref& o) noexcept : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& o) noexcept : Ref(o.get()) {}  // NOLINT
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& o) noexcept : p_(o.detach()) {}  // NOLINT
  ~Ref() {
    if (p_) p_->release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }

  T* get() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  T* operator->() const noexcept { return p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  // Gives the reference away without releasing it.
  T* detach() noexcept { return std::exchange(p_, nullptr); }
  // Takes over a reference that was given away.
  static Ref adopt(T* p) noexcept {
    Ref r;
    r.p_ = p;
    return r;
  }

  template <class U>
  friend bool operator==(const Ref& a, const Ref<U>& b) noexcept {
    return a.get() == b.get();
  }

 private:
  T* p_ = nullptr;
};

using ObjectRef = Ref<Object>;

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

// The object as a T, or null: for the few classes that the fx floor itself defines (Callable, Module, GraphModule).
template <class T>
Ref<T> ref_cast(const ObjectRef& o) noexcept {
  return Ref<T>(dynamic_cast<T*>(o.get()));
}

}  // namespace fxjit::inline v0::fx
