// Modules of C++ programs in FX graphs: torch::nn modules as call_module nodes, and modules whose forward is one
// template for tensors and Proxies, which run eagerly and can be traced.
//
//   struct Block : fxjit::Module<Block> {
//     Block(int64_t c) : Module("Block"), fc(add("fc", torch::nn::Linear(c, c))) {}
//     template <class T> T forward(T x) const { return fc(x).relu() + x; }
//     fxjit::Submodule fc;
//   };
//   auto block = fx::make_ref<Block>(8);
//   fx::GraphModuleRef gm = fx::symbolic_trace(block);   // x → call_module fc → relu → add
//   at::Tensor y = block->forward(x);                    // eager
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/driver/example.h"
#include "fxjit/fx/symbolic_trace.h"
#include "fxjit/fx/tracer.h"
#include "fxjit/torch/values.h"

namespace fxjit::inline v0 {

// A torch::nn module in the tree of a graph's modules. Calls run its forward on tensors. It cannot be traced through: a
// tracer that does not take it as a leaf gets a NotImplementedError. train(), eval() and replaced submodules are seen
// by compiled graphs; a member that is assigned another tensor (`linear->weight = w`) is seen after reset() of the
// compiled function.
class FXJIT_API NnModule final : public fx::Module {
 public:
  explicit NnModule(std::unique_ptr<detail::ExampleSource> source);
  ~NnModule() override;

  // Without "Impl": "torch::nn::Linear".
  std::string class_name() const override;
  std::vector<fx::Attribute> attributes() const override;
  fx::ObjectRef attribute(std::string_view name) const override;
  std::optional<fx::AttributeKind> attribute_kind(std::string_view name) const override;
  uint64_t attributes_version() const override;
  std::optional<fx::Signature> signature() const override;
  fx::Argument forward(fx::Tracer& tracer, std::span<const fx::Argument> args, const fx::Argument& kwargs) override;
  // TypeError for keyword arguments, for another number of tensors, and for values that are none.
  fx::Value call(std::span<const fx::Value> args, const fx::Value& kwargs) override;
  bool is_standard() const override { return true; }

 private:
  // The module as it was read.
  struct State {
    std::unique_ptr<detail::ModuleTree> tree;
    fx::Ref<fx::BasicModule> attributes;
    uint64_t flags = 0;
    uint64_t version = 0;
  };
  fx::Ref<fx::BasicModule> current(uint64_t* version = nullptr) const;

  std::unique_ptr<detail::ExampleSource> source_;
  mutable std::mutex mutex_;
  mutable State state_;
};

// A torch::nn holder (torch::nn::Linear) or shared_ptr as a module of a graph; shared, not copied.
template <detail::ModuleHandle M>
fx::ModuleRef nn_module(const M& module) {
  auto pointer = detail::module_pointer(module);
  using Impl = typename decltype(pointer)::element_type;
  static_assert(detail::tensor_arity<detail::ForwardOf<Impl>>() > 0,
                "fxjit::nn_module: the module has no forward over tensors");
  return fx::make_ref<NnModule>(std::make_unique<detail::ModuleSource<Impl>>(std::move(pointer)));
}

// A child of a Module: called with Proxies it is recorded (or traced through), with tensors it runs.
class FXJIT_API Submodule {
 public:
  explicit Submodule(fx::ModuleRef module) : module_(std::move(module)) {}

  template <class... T>
  fx::Proxy operator()(const fx::Proxy& x, const T&... more) const {
    return call(x, {x, more...});
  }
  template <class... T>
  at::Tensor operator()(const at::Tensor& x, const T&... more) const {
    return call({to_value(x), to_value(more)...});
  }
  const fx::ModuleRef& module() const { return module_; }

 private:
  // TypeError where the Proxy's tracer knows no modules.
  static fx::Tracer& tracer_of(const fx::Proxy& x);
  fx::Proxy call(const fx::Proxy& x, std::initializer_list<fx::Argument> args) const {
    return tracer_of(x).call(module_, args);
  }
  at::Tensor call(std::initializer_list<fx::Value> args) const;

  fx::ModuleRef module_;
};

// Base of a module with `template <class T> T forward(T x, …) const` (of 1 to 8 values) that is written for tensors and
// Proxies alike. Tensors that are registered are used as they are: `x * scale` records a get_attr of `scale`.
template <class Derived>
class Module : public fx::BasicModule {
 public:
  using BasicModule::BasicModule;

  std::optional<fx::Signature> signature() const override { return fx::default_signature(arity()); }
  fx::Argument forward(fx::Tracer& tracer, std::span<const fx::Argument> args, const fx::Argument&) override {
    return invoke<fx::Proxy>(args, [&](const fx::Argument& a) { return fx::Proxy(a.as_node(), tracer); });
  }
  fx::Value call(std::span<const fx::Value> args, const fx::Value&) override {
    return invoke<at::Tensor>(args, [](const fx::Value& v) { return to_tensor(v); });
  }

 protected:
  Submodule add(std::string_view name, fx::ModuleRef m) { return Submodule(register_module(name, std::move(m))); }
  template <detail::ModuleHandle M>
  Submodule add(std::string_view name, const M& m) {
    return add(name, nn_module(m));
  }
  at::Tensor add_parameter(std::string_view name, at::Tensor t) { return add_tensor(name, t, true); }
  at::Tensor add_buffer(std::string_view name, at::Tensor t) { return add_tensor(name, t, false); }

 private:
  struct Forward {
    const Derived* self;
    template <class... T>
    auto operator()(T... v) const -> decltype(self->forward(std::move(v)...)) {
      return self->forward(std::move(v)...);
    }
  };
  static constexpr size_t arity() {
    constexpr size_t n = detail::tensor_arity<Forward>();
    static_assert(n > 0, "a fxjit::Module needs `template <class T> T forward(T x, …) const`");
    return n;
  }
  at::Tensor add_tensor(std::string_view name, at::Tensor t, bool is_parameter) {
    const fx::Value v = to_value(t);
    set_attribute(name, fx::ObjectRef(&v.as_object()),
                  is_parameter ? fx::AttributeKind::Parameter : fx::AttributeKind::Buffer);
    return t;
  }
  template <class T, class Convert>
  fx::Argument invoke(std::span<const fx::Argument> args, Convert convert) const {
    if (args.size() != arity()) {
      throw TypeError(class_name() + ".forward() takes " + std::to_string(arity()) + " values but " +
                      std::to_string(args.size()) + " were given");
    }
    return [&]<size_t... I>(std::index_sequence<I...>) -> fx::Argument {
      return fx::detail::to_argument(Forward{static_cast<const Derived*>(this)}(convert(args[I])...));
    }(std::make_index_sequence<arity()>());
  }
};

}  // namespace fxjit::inline v0
