#include "driver/graph_front.h"

#include "fxjit/torch/values.h"
#include "torch/method_resolver.h"

namespace fxjit::inline v0::driver {
namespace {

fx::ExecutorPtr make_executor(fx::GraphModule&) { return std::make_shared<GraphExecutor>(Options::from_environment()); }

// When the library is loaded, GraphModules learn how to run, and Interpreters what methods of tensors are. A binding
// that knows better registers its own afterwards.
[[maybe_unused]] const bool registered =
    (fx::register_executor_factory(&make_executor), fx::register_operator_resolver(&torch_::method_resolver()), true);

std::vector<fx::Value> values_of(std::span<c10::TensorImpl* const> in) {
  std::vector<fx::Value> values;
  for (const at::Tensor& t : borrow_tensors(in)) values.push_back(to_value(t));
  return values;
}

}  // namespace

GraphFront::GraphFront(fx::GraphModuleRef module, Options options)
    : module_(std::move(module)), engine_(std::move(options)) {
  if (!module_) throw TypeError("fxjit::compile got no GraphModule");
}

at::Tensor GraphFront::call_tensor(std::span<c10::TensorImpl* const> in) {
  if (auto y = engine_.try_tensors(*module_, in)) return *std::move(y);
  return single_tensor(call_tensors(in));
}

detail::CallResult GraphFront::call_tensors(std::span<c10::TensorImpl* const> in) {
  GraphResult r = take_result_apart(engine_.call(*module_, values_of(in), {}));
  if (!r.problem.empty()) throw TypeError(r.problem + ": use call_values()");
  return {std::move(r.tensors), std::move(r.structure)};
}

fx::Value GraphFront::call_values(std::span<const fx::Value> args, const fx::Value& kwargs) {
  return engine_.call(*module_, args, kwargs);
}

}  // namespace fxjit::inline v0::driver
