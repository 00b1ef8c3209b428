// GraphModules behind a CompiledFunction, and as the module's own Executor.
#pragma once

#include "driver/front.h"
#include "driver/graph_engine.h"

namespace fxjit::inline v0::driver {

class GraphFront final : public Front {
 public:
  GraphFront(fx::GraphModuleRef module, Options options);

  at::Tensor call_tensor(std::span<c10::TensorImpl* const> in) override;
  detail::CallResult call_tensors(std::span<c10::TensorImpl* const> in) override;
  fx::Value call_values(std::span<const fx::Value> args, const fx::Value& kwargs) override;
  Report report() override { return engine_.report(*module_); }
  std::string code() override { return engine_.code(*module_); }
  void reset() override { engine_.reset(); }

 private:
  fx::GraphModuleRef module_;
  GraphEngine engine_;
};

// Belongs to its module, so it does not hold it.
class GraphExecutor final : public fx::Executor {
 public:
  explicit GraphExecutor(Options options) : engine_(std::move(options)) {}
  fx::Value call(fx::GraphModule& module, std::span<const fx::Value> args, const fx::Value& kwargs) override {
    return engine_.call(module, args, kwargs);
  }
  std::string code(fx::GraphModule& module) override { return engine_.code(module); }
  void recompile(fx::GraphModule&) override { engine_.forget(); }
  Report report(fx::GraphModule& module) { return engine_.report(module); }

 private:
  GraphEngine engine_;
};

}  // namespace fxjit::inline v0::driver
