// The target of a call_function node of the typed graph, by the name of its ATen schema alone. Passes make nodes with
// it; the torch floor finds the operator behind the name when a node stays a call.
#pragma once

#include <string>
#include <string_view>

#include "fxjit/fx/callable.h"

namespace fxjit::inline v0::ops {

class AtenTarget final : public fx::Callable {
 public:
  // `mutates`: the call writes an operand and stays though nobody uses its result. `random`: it stays, in order with
  // its like, where random numbers count.
  explicit AtenTarget(std::string schema, bool mutates = false, bool random = false)
      : schema_(std::move(schema)), mutates_(mutates), random_(random) {}

  std::string_view qualified_name() const override { return schema_; }
  // "aten::add.Tensor" names its nodes "add".
  std::string_view base_name() const override;
  std::string pretty_name() const override;
  // Passes make functional operators, but for the aten::copy_ into a mutated input.
  bool is_impure(const fx::Argument&, const fx::Argument&, bool impure_random) const override {
    return mutates_ || (random_ && impure_random);
  }
  bool mutates() const { return mutates_; }

 private:
  std::string schema_;  // "aten::add.Tensor"
  bool mutates_, random_;
};

// The part of a schema's name between "::" and ".".
std::string_view operator_name(std::string_view schema);

}  // namespace fxjit::inline v0::ops
