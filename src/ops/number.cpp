#include "ops/number.h"

namespace fxjit::inline v0::ops {
namespace {

constexpr const char* kInput = "host_number";
constexpr const char* kType = "host_number_type";

}  // namespace

std::optional<HostNumber> host_number(const fx::Node& n) {
  if (n.op() != fx::Opcode::Placeholder || n.tensor_type() || !n.meta_if_any()) return std::nullopt;
  const fx::Argument* input = n.meta_if_any()->find(kInput);
  const fx::Argument* type = n.meta_if_any()->find(kType);
  if (!input || !type) return std::nullopt;
  return HostNumber{static_cast<int32_t>(input->as_int()), type->as_dtype()};
}

void mark_host_number(fx::Node* placeholder, HostNumber number) {
  placeholder->meta().set(kInput, int64_t{number.input});
  placeholder->meta().set(kType, number.dtype);
}

}  // namespace fxjit::inline v0::ops
