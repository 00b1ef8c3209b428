#include "torch/tensor_object.h"

#include <sstream>

namespace fxjit::inline v0::torch_ {

std::string TensorObject::type_name() const { return is_parameter_ ? "torch.nn.parameter.Parameter" : "torch.Tensor"; }

void TensorObject::print(std::string& out) const {
  if (!tensor_.defined()) {
    out += "None";
    return;
  }
  std::ostringstream text;  // shape and type, not the data: a printed graph stays readable
  text << (is_parameter_ ? "Parameter(" : "Tensor(") << c10::toString(tensor_.scalar_type()) << tensor_.sizes() << ")";
  out += text.str();
}

std::string IValueObject::type_name() const { return value_.tagKind(); }

at::Tensor as_tensor(const fx::Value& v) {
  auto* handle = dynamic_cast<const TensorHandle*>(v.object_or_null());
  return handle ? handle->tensor() : at::Tensor();
}

}  // namespace fxjit::inline v0::torch_
