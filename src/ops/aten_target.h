// The target of a call_function node of the typed graph, by the name of its ATen schema alone. Passes make nodes with
// it; the torch floor finds the operator behind the name when a node stays a call.
#pragma once

#include <string>
#include <string_view>

#include "fxjit/fx/callable.h"

namespace fxjit::inline v0::ops {

class AtenTarget final : public fx::Callable {
 public:
  explicit AtenTarget(std::string schema) : schema_(std::move(schema)) {}

  std::string_view qualified_name() const override { return schema_; }
  // "aten::add.Tensor" names its nodes "add".
  std::string_view base_name() const override;
  std::string pretty_name() const override;
  // Passes make functional operators only.
  bool is_impure(const fx::Argument&, const fx::Argument&, bool) const override { return false; }

 private:
  std::string schema_;  // "aten::add.Tensor"
};

// The part of a schema's name between "::" and ".".
std::string_view operator_name(std::string_view schema);

}  // namespace fxjit::inline v0::ops
