// Functions and torch::nn modules, recorded by example: one scope, good for the sizes that it saw.
#pragma once

#include <memory>
#include <mutex>

#include "driver/front.h"

namespace fxjit::inline v0::driver {

class ExampleFront final : public Front {
 public:
  ExampleFront(std::unique_ptr<detail::ExampleSource> source, Options options);
  ~ExampleFront() override;

  at::Tensor call_tensor(std::span<c10::TensorImpl* const> in) override;
  detail::CallResult call_tensors(std::span<c10::TensorImpl* const> in) override;
  fx::Value call_values(std::span<const fx::Value> args, const fx::Value& kwargs) override;
  Report report() override;
  std::string code() override;
  void reset() override;

 private:
  // The module's tensors, shared by all variants: each reference of ours is held once, so that counts tell.
  struct Attributes {
    std::unique_ptr<detail::ModuleTree> tree;  // null for a function
    std::vector<at::Tensor> tensors;
    std::vector<uint32_t> holders;  // references to each when it was read
    bool held() const;
    uint64_t flags() const { return tree ? tree->flags() : 0; }
  };
  // The program under one set of training flags.
  struct Variant {
    uint64_t flags = 0;
    std::shared_ptr<Function> function;
  };
  // Replaced whole.
  struct State {
    std::shared_ptr<const Attributes> attributes;
    std::vector<Variant> variants;
    const Variant* current() const;
  };
  using StatePtr = std::shared_ptr<const State>;

  // Through a specialisation; `take` gets the call that succeeded.
  template <class Take>
  bool try_call(std::span<c10::TensorImpl* const> in, Take take);
  detail::CallResult call_slow(std::span<c10::TensorImpl* const> in);
  // The function for the module as it is now, with its attributes.
  Variant variant_now(std::shared_ptr<const Attributes>& attributes);
  std::shared_ptr<const Attributes> read_attributes();
  std::shared_ptr<Function> make_function(const Attributes& attributes);
  detail::CallResult run(std::vector<at::Tensor>& tensors);
  detail::CallResult record(std::shared_ptr<Function> function, std::vector<at::Tensor>& tensors,
                            std::vector<at::Tensor> inputs);
  void check_arity(size_t given) const;

  std::unique_ptr<detail::ExampleSource> source_;
  const size_t arity_;
  Options options_;
  std::atomic<StatePtr> state_;
  std::mutex build_;      // writes of state_
  std::mutex recording_;  // one thread records, the others run eagerly meanwhile
  std::atomic<bool> warned_{false};
  GivenUp given_up_;
};

}  // namespace fxjit::inline v0::driver
