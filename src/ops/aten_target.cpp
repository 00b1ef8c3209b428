#include "ops/aten_target.h"

namespace fxjit::inline v0::ops {

std::string_view operator_name(std::string_view schema) {
  if (size_t at = schema.find("::"); at != std::string_view::npos) schema.remove_prefix(at + 2);
  return schema.substr(0, schema.find('.'));
}

std::string_view AtenTarget::base_name() const { return operator_name(schema_); }

std::string AtenTarget::pretty_name() const {
  // As torch prints an overload: torch.ops.aten.add.Tensor, and .default for the unnamed one.
  std::string name(operator_name(schema_));
  size_t dot = schema_.find('.');
  return "torch.ops.aten." + name + (dot == std::string::npos ? ".default" : schema_.substr(dot));
}

}  // namespace fxjit::inline v0::ops
