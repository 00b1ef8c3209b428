// fxjit::compile: programs over tensors as machine code, in this process, with no Python.
//
//   auto f = fxjit::compile(module);        // torch::nn module, function over tensors, or fx::GraphModule
//   torch::NoGradGuard no_grad;
//   torch::Tensor y = f(x);                 // the first call runs eagerly and is recorded; later ones run its code
//
// Results equal eager's. What cannot be compiled runs eagerly (a GraphModule: in its generic form); explain() says why.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fxjit/driver/example.h"
#include "fxjit/explain.h"
#include "fxjit/fx/graph_module.h"
#include "fxjit/options.h"
#include "fxjit/torch/values.h"

namespace fxjit::inline v0 {

namespace driver {
class Front;
}

// A handle: copies share one compiled program. All functions may be called from several threads at once, reset()
// included; a call that runs keeps the code it runs.
class FXJIT_API CompiledFunction {
 public:
  explicit CompiledFunction(std::shared_ptr<driver::Front> front);
  ~CompiledFunction();
  CompiledFunction(const CompiledFunction&);
  CompiledFunction& operator=(const CompiledFunction&);

  // For programs whose result is one tensor; TypeError for others and for a wrong number of arguments. Errors of the
  // program come through with their type.
  template <class... T>
    requires(std::convertible_to<const T&, const at::Tensor&> && ...)
  at::Tensor operator()(const T&... tensors) const {
    return call_tensor(std::array<c10::TensorImpl*, sizeof...(T)>{impl_of(tensors)...});
  }

  // The tensors of the result in order, structures flattened; undefined ones and other values are left out.
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& tensors) const;
  // Any values in, the whole structure out. Keyword arguments are for GraphModules.
  fx::Value call_values(std::span<const fx::Value> args, const fx::Value& kwargs = {}) const;

  // How calls run: capture, kernels with their sources and bytes, ATen calls, fallbacks with reasons, milliseconds.
  driver::Report explain() const;
  // LLVM IR: the generic form (of a GraphModule), then each specialisation under its heading.
  std::string code() const;
  // Forgets all specialisations and failures. Needed where the program depends on what cannot be seen: values that a
  // function captured, members of a module that are neither parameters nor buffers.
  void reset() const;

 protected:
  static c10::TensorImpl* impl_of(const at::Tensor& t) { return t.unsafeGetTensorImpl(); }
  at::Tensor call_tensor(std::span<c10::TensorImpl* const> in) const;
  detail::CallResult call_any(std::span<c10::TensorImpl* const> in) const;

 private:
  std::shared_ptr<driver::Front> front_;
};

// The same for a program that returns an R: a tuple, vector, … of tensors.
template <class R>
class Compiled : public CompiledFunction {
 public:
  using CompiledFunction::CompiledFunction;
  template <class... T>
    requires(std::convertible_to<const T&, const at::Tensor&> && ...)
  R operator()(const T&... tensors) const {
    detail::CallResult r = call_any(std::array<c10::TensorImpl*, sizeof...(T)>{impl_of(tensors)...});
    return detail::unflatten<R>(r.structure, r.tensors);
  }
};

namespace detail {
FXJIT_API std::shared_ptr<driver::Front> make_front(std::unique_ptr<ExampleSource> source, Options options);

template <class R>
using CompiledFor = std::conditional_t<std::is_convertible_v<R, at::Tensor>, CompiledFunction, Compiled<R>>;
}  // namespace detail

// A GraphModule: recorded node by node, so that one specialisation serves many sizes. Its composites are inlined unless
// they are marked as leaves or impure. Reads attributes at call time; recompile() of the module takes effect.
FXJIT_API CompiledFunction compile(fx::GraphModuleRef module, Options options = Options::from_environment());

// A torch::nn module (a holder such as torch::nn::Linear, or a shared_ptr) as it is, recorded by example: each new size
// is a specialisation of its own, kernels are shared. Parameters and buffers are read at call time; train() and eval()
// are seen. `forward` is called with the smallest number of tensors that it takes.
template <detail::ModuleHandle M>
auto compile(const M& module, Options options = Options::from_environment()) {
  auto pointer = detail::module_pointer(module);
  using Impl = typename decltype(pointer)::element_type;
  static_assert(detail::tensor_arity<detail::ForwardOf<Impl>>() > 0,
                "fxjit::compile: the module has no forward over tensors; compile a lambda that calls it");
  using Result = detail::TensorResult<detail::ForwardOf<Impl>>;
  return detail::CompiledFor<Result>(
      detail::make_front(std::make_unique<detail::ModuleSource<Impl>>(std::move(pointer)), std::move(options)));
}

// A function over tensors, recorded by example. What it captures by value or reads elsewhere counts as constant, except
// for tensors: a program that uses a tensor which is no argument runs eagerly.
template <class F>
  requires(!detail::ModuleHandle<F> && !std::convertible_to<F, fx::GraphModuleRef> &&
           detail::tensor_arity<std::decay_t<F>>() > 0)
auto compile(F&& fn, Options options = Options::from_environment()) {
  using Fn = std::decay_t<F>;
  return detail::CompiledFor<detail::TensorResult<Fn>>(
      detail::make_front(std::make_unique<detail::FunctionSource<Fn>>(std::forward<F>(fn)), std::move(options)));
}

}  // namespace fxjit::inline v0
