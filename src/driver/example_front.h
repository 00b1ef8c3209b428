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
  // The program in one state of its module.
  struct Variant {
    uint64_t state = 0;
    std::shared_ptr<Function> function;
    std::vector<at::Tensor> attributes;
    std::vector<uint32_t> holders;  // references to each when it was read
    bool attributes_held() const;
  };
  using VariantPtr = std::shared_ptr<const Variant>;
  using List = std::vector<VariantPtr>;

  const Variant* current(const List& list) const;
  detail::CallResult call_slow(std::span<c10::TensorImpl* const> in);
  VariantPtr make_variant(uint64_t state);
  VariantPtr variant_for(uint64_t state);
  detail::CallResult run(std::vector<at::Tensor>& tensors);
  detail::CallResult record(const Variant& v, std::vector<at::Tensor>& tensors, std::vector<at::Tensor> inputs);
  void check_arity(size_t given) const;

  std::unique_ptr<detail::ExampleSource> source_;
  const size_t arity_;
  Options options_;
  std::atomic<std::shared_ptr<const List>> variants_;
  std::mutex build_;      // writes of variants_
  std::mutex recording_;  // one thread records, the others run eagerly meanwhile
  std::atomic<bool> warned_{false};
};

}  // namespace fxjit::inline v0::driver
