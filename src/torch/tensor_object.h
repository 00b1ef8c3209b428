// Tensors and other ATen values as the opaque objects that the fx floor carries.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>

#include "fxjit/fx/argument.h"
#include "fxjit/fx/object.h"

namespace fxjit::inline v0::torch_ {

// Whatever holds a tensor, this floor's handle or a binding's. Two handles of one TensorImpl are equal.
class TensorHandle : public fx::Object {
 public:
  virtual at::Tensor tensor() const = 0;
  const void* identity() const override { return tensor().unsafeGetTensorImpl(); }
};

class TensorObject final : public TensorHandle {
 public:
  explicit TensorObject(at::Tensor t, bool is_parameter = false) : tensor_(std::move(t)), is_parameter_(is_parameter) {}
  fx::ObjectKind object_kind() const override {
    return is_parameter_ ? fx::ObjectKind::Parameter : fx::ObjectKind::Tensor;
  }
  std::string type_name() const override;
  at::Tensor tensor() const override { return tensor_; }
  const void* identity() const override { return tensor_.unsafeGetTensorImpl(); }
  void print(std::string& out) const override;

 private:
  at::Tensor tensor_;
  bool is_parameter_;
};

// An ATen value that fx::Argument has no kind for: a generator, a stream, a custom class, a float8 dtype.
class IValueObject final : public fx::Object {
 public:
  explicit IValueObject(c10::IValue v) : value_(std::move(v)) {}
  std::string type_name() const override;
  const c10::IValue& value() const { return value_; }

 private:
  c10::IValue value_;
};

inline fx::Value from_tensor(at::Tensor t) { return fx::Value(fx::make_ref<TensorObject>(std::move(t))); }
// The tensor in `v`; undefined where there is none.
at::Tensor as_tensor(const fx::Value& v);

}  // namespace fxjit::inline v0::torch_
