// What the bindings of passes over graphs share.
#pragma once

#include <optional>

#include "python/fx_objects.h"

namespace fxjit::inline v0::python {

// A Graph argument; TypeError for anything else.
PyGraph* graph_argument(PyObject* o, const char* what);
std::vector<fx::Node*> nodes_argument(PyObject* sequence);

// Calls the hooks of the owning module for each node that is made, erased or gets another input while this lives.
class HookScope {
 public:
  explicit HookScope(PyGraph* g);
  ~HookScope();
  HookScope(const HookScope&) = delete;

 private:
  struct Observer;
  fx::Graph& graph_;
  std::unique_ptr<Observer> observer_;
};

bool is_true(PyObject* o);

}  // namespace fxjit::inline v0::python
