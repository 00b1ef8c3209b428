// From a function over Proxies, or a module, to a GraphModule.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fxjit/fx/convert.h"
#include "fxjit/fx/graph_module.h"

namespace fxjit::inline v0::fx {

// Parameter names are not part of a C++ function: x, y, z, w for up to four, else x0, x1, …
FXJIT_API Signature default_signature(size_t parameters);
FXJIT_API Signature named_signature(std::vector<std::string> names);

// `fn` takes 1 to 8 Proxies and returns a Proxy, a constant, or a tuple, pair, array or vector of these.
template <class F>
TraceFunction trace_function(F fn, std::vector<std::string> names = {}, std::string name = "function") {
  constexpr size_t n = detail::proxy_arity<F>();
  static_assert(n > 0, "symbolic_trace needs a function that can be called with 1 to 8 Proxies");
  if (!names.empty() && names.size() != n) {
    throw ValueError("symbolic_trace got " + std::to_string(names.size()) + " names for a function of " +
                     std::to_string(n) + " parameters");
  }
  TraceFunction f;
  f.name = std::move(name);
  f.signature = names.empty() ? default_signature(n) : named_signature(std::move(names));
  f.body = [fn = std::move(fn)](TracerBase&, std::span<const Proxy> args) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return detail::to_argument(fn(args[I]...));
    }(std::make_index_sequence<n>());
  };
  return f;
}

FXJIT_API GraphModuleRef symbolic_trace(const ModuleRef& root);
FXJIT_API GraphModuleRef symbolic_trace(const TraceFunction& function);

template <class F>
  requires(detail::proxy_arity<F>() > 0)
GraphModuleRef symbolic_trace(F fn, std::vector<std::string> names = {}) {
  return symbolic_trace(trace_function(std::move(fn), std::move(names)));
}

}  // namespace fxjit::inline v0::fx
