// ATen's functions in programs that serve tensors and Proxies alike.
#pragma once

#include <string_view>
#include <vector>

#include "fxjit/fx/convert.h"
#include "fxjit/fx/tracer.h"
#include "fxjit/torch/values.h"

namespace fxjit::inline v0 {

// call_aten("cat", std::vector{x, y}, 1): with a Proxy among the arguments a call_function node, else the call itself.
// The overload is chosen as torch's Python functions do. NameError for an operator that torch does not have;
// RuntimeError for Proxies of several tracers.
template <class... Args>
  requires(fx::detail::holds_proxy<Args>() || ...)
fx::Proxy call_aten(std::string_view op, const Args&... args) {
  std::vector<fx::TracerBase*> tracers;
  auto collect = [&](const fx::Proxy& p) { tracers.push_back(&p.tracer()); };
  (fx::detail::for_each_proxy<Args>(args, collect), ...);
  fx::TracerBase& tracer = fx::detail::common_tracer(tracers, op);
  return tracer.create_proxy(fx::Opcode::CallFunction, aten(op),
                             fx::Argument::tuple({fx::detail::to_argument(args)...}));
}

template <class... Args>
  requires(!(fx::detail::holds_proxy<Args>() || ...))
at::Tensor call_aten(std::string_view op, const Args&... args) {
  const std::vector<fx::Value> values{fx::detail::to_argument(args)...};
  return to_tensor(aten(op)->call(values, {}));
}

}  // namespace fxjit::inline v0
