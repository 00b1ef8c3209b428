// The generic form of a GraphModule's forward: LLVM IR with one call per node, any shape, any callee.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "codegen/forward/forward_plan.h"
#include "fxjit/fx/graph_module.h"
#include "fxjit/options.h"
#include "jit/forward_jit.h"

namespace fxjit::inline v0::driver {

// Of one snapshot. Thread-safe.
class GenericForm {
 public:
  GenericForm(std::shared_ptr<const fx::Graph> graph, const Options& options);
  ~GenericForm();

  // `bound`: one value per placeholder, in order. `root` resolves attributes and modules. Code is made at the first
  // call; on a machine without a compiled target the graph is interpreted. Exceptions come through unchanged, values
  // are released after their last use.
  fx::Value run(fx::GraphModule& root, std::span<const fx::Value> bound);
  // Why there is no code, so that the graph is interpreted; empty as long as nothing went wrong.
  std::string problem() const { return failed_.load(std::memory_order_acquire) ? problem_ : std::string(); }
  // The LLVM IR.
  std::string code() const;

 private:
  struct Call;
  static fxjit_status call(fxjit_frame* frame, int32_t step);
  static void release(fxjit_frame* frame, int32_t slot);
  static const fxjit_table* table();
  fxjit_generic function();
  fx::Value interpret(fx::GraphModule& root, std::span<const fx::Value> bound) const;

  std::shared_ptr<const fx::Graph> graph_;
  Options options_;
  codegen::ForwardPlan plan_;
  std::once_flag once_;
  jit::CompiledForward<fxjit_generic> compiled_;
  std::string problem_;  // written once, before failed_
  std::atomic<bool> failed_{false};
};

}  // namespace fxjit::inline v0::driver
