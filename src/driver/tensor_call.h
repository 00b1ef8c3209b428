// One run through the specialisations of a function: inputs gathered and results owned without touching the heap.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "driver/function.h"
#include "fxjit/driver/example.h"

namespace fxjit::inline v0::driver {

class TensorCall {
 public:
  // Inputs are borrowed: arguments, then attributes.
  TensorCall(Function& function, std::span<c10::TensorImpl* const> args, std::span<const at::Tensor> attributes)
      : function_(function), in_(const_cast<c10::TensorImpl**>(args.data())), results_(function.max_results()) {
    const size_t inputs = attributes.empty() ? 0 : args.size() + attributes.size();
    c10::TensorImpl** room = inline_;
    if (C10_UNLIKELY(inputs + results_ > kInline)) {
      heap_ = std::make_unique<c10::TensorImpl*[]>(inputs + results_);
      room = heap_.get();
    }
    out_ = room + inputs;
    if (!inputs) return;
    in_ = room;
    for (size_t i = 0; i < args.size(); ++i) room[i] = args[i];
    for (size_t i = 0; i < attributes.size(); ++i) room[args.size() + i] = attributes[i].unsafeGetTensorImpl();
  }
  ~TensorCall() {
    if (!outcome_.specialisation) return;
    for (size_t i = 0; i < results_; ++i)
      if (out_[i]) c10::raw::intrusive_ptr::decref(out_[i]);
  }
  TensorCall(const TensorCall&) = delete;
  TensorCall& operator=(const TensorCall&) = delete;

  // False where no specialisation fits: nothing was done.
  bool run() {
    for (size_t i = 0; i < results_; ++i) out_[i] = nullptr;  // a specialisation may have fewer results
    outcome_ = function_.try_call(in_, {out_, results_});
    return outcome_.specialisation != nullptr;
  }

  const fx::Value& structure() const { return *outcome_.structure; }
  bool is_single() const { return structure().is_int(); }

  // The tensor of a structure that is a single one. Once.
  at::Tensor take_single() {
    const OutputSource& source = outcome_.outputs[static_cast<size_t>(structure().as_int())];
    if (source.kind == OutputSource::Result)
      return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim(
          std::exchange(out_[static_cast<size_t>(source.index)], nullptr)));
    return tensor(source);
  }

  detail::CallResult result() const {
    detail::CallResult r;
    r.structure = structure();
    for (const OutputSource& source : outcome_.outputs) r.tensors.push_back(tensor(source));
    return r;
  }

 private:
  at::Tensor tensor(const OutputSource& source) const {
    c10::TensorImpl* t = source.kind == OutputSource::Input ? in_[source.index] : out_[source.index];
    return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(t));
  }

  static constexpr size_t kInline = 24;
  Function& function_;
  c10::TensorImpl** in_;
  size_t results_;
  c10::TensorImpl** out_;
  Function::Outcome outcome_;
  c10::TensorImpl* inline_[kInline];
  std::unique_ptr<c10::TensorImpl*[]> heap_;
};

}  // namespace fxjit::inline v0::driver
