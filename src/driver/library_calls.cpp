#include "driver/library_calls.h"

#include "torch/dnnl_linear.h"

namespace fxjit::inline v0::driver {

std::unique_ptr<torch_::HostCall> library_call(const fx::Node& node, const torch_::Binder& binder,
                                               const std::vector<int32_t>& results, std::string* reason) {
  if (node.op() != fx::Opcode::CallFunction || node.callable().qualified_name() != "aten::linear") return nullptr;
  auto call = torch_::bind_dnnl_linear(node, binder, results);
  if (call) return *std::move(call);
  *reason = call.reason();
  return nullptr;
}

}  // namespace fxjit::inline v0::driver
