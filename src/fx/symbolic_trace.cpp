#include "fxjit/fx/symbolic_trace.h"

#include "support/format.h"

namespace fxjit::inline v0::fx {

Signature named_signature(std::vector<std::string> names) {
  Signature signature;
  for (std::string& name : names) signature.push_back({std::move(name)});
  return signature;
}

Signature default_signature(size_t parameters) {
  std::vector<std::string> names{"x", "y", "z", "w"};
  if (parameters <= names.size()) {
    names.resize(parameters);
  } else {
    names.clear();
    for (size_t i = 0; i < parameters; ++i) names.push_back(support::concat("x", i));
  }
  return named_signature(std::move(names));
}

GraphModuleRef symbolic_trace(const ModuleRef& root) {
  Tracer tracer;
  GraphPtr graph = tracer.trace(root);
  const std::string name = root->class_name();
  return GraphModule::create(root, std::move(graph), name.substr(name.rfind('.') + 1));
}

GraphModuleRef symbolic_trace(const TraceFunction& function) {
  Tracer tracer;
  GraphPtr graph = tracer.trace(function);
  return GraphModule::create(tracer.root(), std::move(graph), function.name);
}

}  // namespace fxjit::inline v0::fx
