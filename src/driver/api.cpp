#include "driver/background.h"
#include "driver/example_front.h"
#include "driver/graph_front.h"
#include "fxjit/compile.h"

namespace fxjit::inline v0 {

CompiledFunction::CompiledFunction(std::shared_ptr<driver::Front> front) : front_(std::move(front)) {}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(const CompiledFunction&) = default;
CompiledFunction& CompiledFunction::operator=(const CompiledFunction&) = default;

at::Tensor CompiledFunction::call_tensor(std::span<c10::TensorImpl* const> in) const { return front_->call_tensor(in); }

detail::CallResult CompiledFunction::call_any(std::span<c10::TensorImpl* const> in) const {
  return front_->call_tensors(in);
}

std::vector<at::Tensor> CompiledFunction::call(const std::vector<at::Tensor>& tensors) const {
  std::vector<c10::TensorImpl*> in;
  for (const at::Tensor& t : tensors) in.push_back(t.unsafeGetTensorImpl());
  return call_any(in).tensors;
}

fx::Value CompiledFunction::call_values(std::span<const fx::Value> args, const fx::Value& kwargs) const {
  return front_->call_values(args, kwargs);
}

// What is shown is complete: what is being compiled in the background belongs to it.
driver::Report CompiledFunction::explain() const {
  driver::drain_background();
  return front_->report();
}
std::string CompiledFunction::code() const {
  driver::drain_background();
  return front_->code();
}
void CompiledFunction::reset() const { front_->reset(); }

std::shared_ptr<driver::Front> detail::make_front(std::unique_ptr<ExampleSource> source, Options options) {
  return std::make_shared<driver::ExampleFront>(std::move(source), std::move(options));
}

CompiledFunction compile(fx::GraphModuleRef module, Options options) {
  return CompiledFunction(std::make_shared<driver::GraphFront>(std::move(module), std::move(options)));
}

}  // namespace fxjit::inline v0
