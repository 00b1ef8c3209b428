// fxjit::record: a torch::nn module, or a function over tensors, as an FX graph that can be read and transformed. The
// program is run once on example tensors, as it is, and what it asks of ATen becomes the graph.
//
//   fx::GraphModuleRef gm = fxjit::record(model, {x});                      // good for sizes like x's
//   fx::GraphModuleRef gm = fxjit::record(model, {x}, {.other = {y}});      // for any size that differs between the
//   two fx::GraphModuleRef gm = fxjit::record(model, {x}, {.leaves = {"layer1"}});
//
// docs/recording.md says what a record holds and what it cannot.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/driver/example.h"
#include "fxjit/fx/graph_module.h"

namespace fxjit::inline v0 {

struct RecordOptions {
  // A second example, on which the program is run too: sizes that differ may be any afterwards. Integers that differ
  // between the two records are computed from sizes in the graph; TraceError for one that follows from none.
  std::vector<at::Tensor> other = {};
  // Of the placeholders; by default x, y, z, w, for more than four x0, x1, …
  std::vector<std::string> names = {};
  // Paths of submodules that become one call_module node each; and a predicate over path and class that picks more of
  // them. Of modules inside each other the outermost counts.
  std::vector<std::string> leaves = {};
  std::function<bool(std::string_view path, std::string_view class_name)> is_leaf = {};
  // A tensor that is no input, parameter, buffer or result becomes the attribute _tensor_constant{i} instead of an
  // error. Right for tensors that a function captured, wrong for those that it fills from the sizes or data it sees.
  bool constants = false;
  // `t` with `addmm` or `matmul` becomes aten::linear; two products around a softmax become
  // aten::scaled_dot_product_attention.
  bool recognise = true;
  // Attention with a mask too. Rows that are masked whole become 0 there; eager's softmax makes them NaN.
  bool masked_attention = false;
};

namespace detail {
FXJIT_API fx::GraphModuleRef record_source(ExampleSource& source, std::vector<at::Tensor> example,
                                           const RecordOptions& options);

template <ModuleHandle M>
auto example_source(const M& module) {
  auto pointer = module_pointer(module);
  using Impl = typename decltype(pointer)::element_type;
  static_assert(tensor_arity<ForwardOf<Impl>>() > 0,
                "fxjit::record: the module has no forward over tensors; record a lambda that calls it");
  return ModuleSource<Impl>(std::move(pointer));
}

template <class F>
  requires(!ModuleHandle<F> && tensor_arity<std::decay_t<F>>() > 0)
auto example_source(F fn) {
  return FunctionSource<F>(std::move(fn));
}
}  // namespace detail

// The graph holds call_function nodes of ATen operators, get_attr nodes under the paths of the module's parameters and
// buffers (which are shared with it, not copied), and what the program returned as its output. Runs the program: it
// draws random numbers and updates buffers as any call. TraceError says what cannot be a graph, and where; TypeError
// and ValueError for examples that do not fit; NameError for a leaf that does not exist.
template <class P>
fx::GraphModuleRef record(const P& program, std::vector<at::Tensor> example, const RecordOptions& options = {}) {
  auto source = detail::example_source(program);
  return detail::record_source(source, std::move(example), options);
}

}  // namespace fxjit::inline v0
