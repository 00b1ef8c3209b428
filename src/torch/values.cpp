#include "fxjit/torch/values.h"

#include "fxjit/errors.h"
#include "torch/aten_call.h"
#include "torch/dtype.h"
#include "torch/method_resolver.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0 {
namespace {

// torch.relu and its like: the overload is chosen at each call.
class OverloadedFunction final : public fx::Callable {
 public:
  explicit OverloadedFunction(std::string name) : name_("torch." + std::move(name)) {}
  size_t hash() const override { return std::hash<std::string>()(name_); }
  bool equal(const fx::Object& other) const override {
    const auto* o = dynamic_cast<const OverloadedFunction*>(&other);
    return o && o->name_ == name_;
  }

  std::string_view qualified_name() const override { return name_; }
  fx::Value call(std::span<const fx::Value> args, const fx::Value& kwargs) const override {
    return *torch_::call_overloaded(base_name(), args, kwargs);
  }
  // In-place operators write an argument.
  bool is_impure(const fx::Argument&, const fx::Argument&, bool) const override {
    return name_.ends_with('_') && !name_.ends_with("__");
  }

 private:
  std::string name_;
};

}  // namespace

bool torch_::is_operator(const fx::Callable& f) {
  return dynamic_cast<const OverloadedFunction*>(&f) || dynamic_cast<const AtenCallable*>(&f);
}

fx::Value to_value(const at::Tensor& t) { return t.defined() ? torch_::from_tensor(t) : fx::Value(); }

at::Tensor to_tensor(const fx::Value& v) {
  at::Tensor t = torch_::as_tensor(v);
  if (!t.defined()) throw TypeError("expected a tensor, got a value of type " + v.type_name());
  return t;
}

fx::CallableRef aten(std::string_view name) {
  if (name.find("::") == name.npos) {
    if (torch_::has_operator(name)) return fx::make_ref<OverloadedFunction>(std::string(name));
  } else if (auto op = torch_::find_operator(name)) {
    return fx::make_ref<torch_::AtenCallable>(*std::move(op));
  }
  throw NameError("torch has no operator '" + std::string(name) + "'");
}

fx::Argument fx::ArgumentTraits<c10::ScalarType>::convert(c10::ScalarType t) {
  if (auto type = torch_::to_dtype(t)) return *type;
  throw TypeError(std::string("fxjit has no name for the element type ") + c10::toString(t));
}

}  // namespace fxjit::inline v0
