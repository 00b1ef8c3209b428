// Programs that compile() records by example: functions over tensors and torch::nn modules, behind one interface. The
// templates here need no header of torch::nn: whoever has a module has its type.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fxjit/driver/structure.h"

namespace fxjit::inline v0::detail {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_parameter = false;
};

struct NamedSubmodule {
  std::string path;
  std::string class_name;
};

// A module as it was when a program was captured. Who replaces a submodule drops references to the old one.
class FXJIT_API ModuleTree {
 public:
  virtual ~ModuleTree();
  // False once some submodule has lost a holder: then the tree is to be read again.
  virtual bool held() const = 0;
  // The training flags of all modules, as one word.
  virtual uint64_t flags() const = 0;

  std::vector<NamedTensor> attributes;  // parameters and buffers, each once
  std::vector<NamedSubmodule> submodules;
};

class FXJIT_API ExampleSource {
 public:
  virtual ~ExampleSource();
  virtual size_t arity() const = 0;
  virtual std::string name() const = 0;
  // Runs the program; its tensors go to `out`.
  virtual fx::Value run(std::span<at::Tensor> in, std::vector<at::Tensor>& out) = 0;
  // The modules that it consists of; null for a function.
  virtual std::unique_ptr<ModuleTree> tree() { return nullptr; }
};

template <class F, size_t... I>
constexpr bool takes_tensors(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, decltype((void)I, std::declval<at::Tensor&>())...>;
}

// The number of tensors that F takes: the smallest from 1 to 12, or 0.
template <class F, size_t N = 1>
constexpr size_t tensor_arity() {
  if constexpr (N > 12) {
    return 0;
  } else if constexpr (takes_tensors<F>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return tensor_arity<F, N + 1>();
  }
}

template <class F, size_t N>
decltype(auto) invoke_with(F& fn, std::span<at::Tensor> in) {
  return [&]<size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
    return fn(in[I]...);
  }(std::make_index_sequence<N>());
}

template <class F>
using TensorResult = std::remove_cvref_t<decltype(invoke_with<F, tensor_arity<F>()>(
    std::declval<F&>(), std::declval<std::span<at::Tensor>>()))>;

template <class F>
class FunctionSource final : public ExampleSource {
 public:
  explicit FunctionSource(F fn) : fn_(std::move(fn)) {}
  size_t arity() const override { return tensor_arity<F>(); }
  std::string name() const override { return "function"; }
  fx::Value run(std::span<at::Tensor> in, std::vector<at::Tensor>& out) override {
    return flatten(invoke_with<F, tensor_arity<F>()>(fn_, in), out);
  }

 private:
  F fn_;
};

// `forward` as a function object.
template <class M>
struct ForwardOf {
  M* module;
  template <class... T>
  auto operator()(T&&... tensors) const -> decltype(module->forward(std::forward<T>(tensors)...)) {
    return module->forward(std::forward<T>(tensors)...);
  }
};

template <class M>
class ModuleTreeOf final : public ModuleTree {
 public:
  explicit ModuleTreeOf(M& module) : modules_(module.modules(/*include_self=*/false)), root_(module) {
    for (const auto& m : modules_) holders_.push_back(m.use_count());
    std::unordered_set<const void*> seen;
    auto add = [&](const auto& named, bool is_parameter) {
      for (const auto& item : named)
        if (item.value().defined() && seen.insert(item.value().unsafeGetTensorImpl()).second)
          attributes.push_back({item.key(), item.value(), is_parameter});
    };
    add(module.named_parameters(), true);
    add(module.named_buffers(), false);
    for (const auto& item : module.named_modules(/*name_prefix=*/{}, /*include_self=*/false))
      submodules.push_back({item.key(), item.value()->name()});
  }
  bool held() const override {
    for (size_t i = 0; i < modules_.size(); ++i)
      if (modules_[i].use_count() < holders_[i]) return false;
    return true;
  }
  uint64_t flags() const override {
    uint64_t h = root_.is_training();
    for (const auto& m : modules_) h = (h << 1 | h >> 63) ^ (m->is_training() ? 0x9e3779b97f4a7c15ull : 0);
    return h;
  }

 private:
  const decltype(std::declval<M&>().modules()) modules_;
  std::vector<long> holders_;
  const M& root_;  // the source holds it
};

template <class M>
class ModuleSource final : public ExampleSource {
 public:
  explicit ModuleSource(std::shared_ptr<M> module) : module_(std::move(module)) {}
  size_t arity() const override { return tensor_arity<ForwardOf<M>>(); }
  std::string name() const override { return module_->name(); }
  fx::Value run(std::span<at::Tensor> in, std::vector<at::Tensor>& out) override {
    ForwardOf<M> forward{module_.get()};
    return flatten(invoke_with<ForwardOf<M>, tensor_arity<ForwardOf<M>>()>(forward, in), out);
  }
  std::unique_ptr<ModuleTree> tree() override { return std::make_unique<ModuleTreeOf<M>>(*module_); }

 private:
  std::shared_ptr<M> module_;
};

template <class M>
concept NnModule = requires(M& m) {
  m.parameters();
  m.buffers();
  m.named_parameters();
  m.is_training();
};

// The module behind a torch::nn holder or a shared_ptr; null type for anything else.
template <class T>
auto module_pointer(const T& v) {
  if constexpr (requires { v.ptr()->is_training(); }) {
    return v.ptr();
  } else if constexpr (requires(std::shared_ptr<typename T::element_type> p) { p = v; }) {
    return v;
  } else {
    return nullptr;
  }
}

template <class T>
concept ModuleHandle = requires(const T& v) {
  { *module_pointer(v) } -> NnModule;
};

}  // namespace fxjit::inline v0::detail
