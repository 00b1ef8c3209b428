// Modules as the fx floor sees them: a tree of named attributes with a forward. torch's modules appear through
// adapters.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fxjit/fx/callable.h"

namespace fxjit::inline v0::fx {

class Tracer;

enum class AttributeKind : uint8_t { Parameter, Buffer, Plain, Module };

struct Attribute {
  std::string name;
  ObjectRef value;
  AttributeKind kind;
};

class FXJIT_API Module : public Object {
 public:
  ObjectKind object_kind() const final { return ObjectKind::Module; }
  std::string type_name() const override { return class_name(); }

  // Module and class: "torch.nn.modules.linear.Linear".
  virtual std::string class_name() const = 0;
  // Own attributes, submodules included, in order of registration.
  virtual std::vector<Attribute> attributes() const = 0;
  // The own attribute of this name, or null.
  virtual ObjectRef attribute(std::string_view name) const;
  virtual std::optional<AttributeKind> attribute_kind(std::string_view name) const;
  // NotImplementedError by default.
  virtual void set_attribute(std::string_view name, ObjectRef value, AttributeKind kind);
  virtual bool delete_attribute(std::string_view name);
  // A number that changes whenever an own attribute is set or deleted, so that look-ups may be kept. 0: look again.
  virtual uint64_t attributes_version() const { return 0; }

  virtual std::optional<Signature> signature() const { return std::nullopt; }
  // Records what the module does through `tracer`: args hold nodes where values are traced. NotImplementedError by
  // default.
  virtual Argument forward(Tracer& tracer, std::span<const Argument> args, const Argument& kwargs);
  // Runs on values. NotImplementedError by default.
  virtual Value call(std::span<const Value> args, const Value& kwargs);

  // Whether a Tracer treats it as a leaf by default: the class is torch.nn's, and not Sequential.
  virtual bool is_standard() const;
  virtual bool is_impure() const { return false; }
};

using ModuleRef = Ref<Module>;

// A module made of what is registered with it; derive and override `forward`.
class FXJIT_API BasicModule : public Module {
 public:
  explicit BasicModule(std::string class_name = "fxjit.Module") : class_name_(std::move(class_name)) {}

  std::string class_name() const override { return class_name_; }
  std::vector<Attribute> attributes() const override { return attributes_; }
  ObjectRef attribute(std::string_view name) const override;
  std::optional<AttributeKind> attribute_kind(std::string_view name) const override;
  void set_attribute(std::string_view name, ObjectRef value, AttributeKind kind) override;
  bool delete_attribute(std::string_view name) override;
  uint64_t attributes_version() const override { return version_.load(std::memory_order_acquire); }
  void traverse(ObjectVisitor& visitor) const override;

  template <class T>
  Ref<T> register_module(std::string_view name, Ref<T> m) {
    set_attribute(name, m, AttributeKind::Module);
    return m;
  }
  ObjectRef register_parameter(std::string_view name, ObjectRef value) {
    set_attribute(name, value, AttributeKind::Parameter);
    return value;
  }
  ObjectRef register_buffer(std::string_view name, ObjectRef value) {
    set_attribute(name, value, AttributeKind::Buffer);
    return value;
  }

 private:
  std::string class_name_;
  std::vector<Attribute> attributes_;
  std::unordered_map<std::string, size_t> index_;
  std::atomic<uint64_t> version_{1};
};

// The attribute at a dotted path ("" is the module itself), or null.
FXJIT_API ObjectRef find_attribute(const Module& root, std::string_view path);
FXJIT_API ModuleRef find_module(const Module& root, std::string_view path);
// Sets it, creating missing modules on the way; TypeError where the path leads through something else.
FXJIT_API void set_attribute_at(Module& root, std::string_view path, ObjectRef value, AttributeKind kind);
FXJIT_API bool delete_attribute_at(Module& root, std::string_view path);

// All modules of the tree, parents first, each once under its first name; the root has the path "".
FXJIT_API std::vector<std::pair<std::string, ModuleRef>> named_modules(const ModuleRef& root);
// All attributes of the tree that are no modules, each identity once under its first path.
FXJIT_API std::vector<Attribute> named_attributes(const ModuleRef& root);

}  // namespace fxjit::inline v0::fx
