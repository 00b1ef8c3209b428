#include "driver/front.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "torch/tensor_object.h"

namespace fxjit::inline v0 {
namespace {

class ConstantLeaf final : public fx::Object {
 public:
  explicit ConstantLeaf(fx::Value v) : value_(std::move(v)) {}
  std::string type_name() const override { return value_.type_name(); }
  const fx::Value& value() const { return value_; }
  void traverse(fx::ObjectVisitor& visitor) const override { fx::traverse(value_, visitor); }

 private:
  fx::Value value_;
};

}  // namespace

fx::Value detail::constant_leaf(fx::Value v) { return fx::Value(fx::make_ref<ConstantLeaf>(std::move(v))); }

fx::Value detail::constant_of(const fx::Value& leaf) {
  if (auto* c = dynamic_cast<const ConstantLeaf*>(leaf.object_or_null())) return c->value();
  throw TypeError("the program did not return the value that its type promises");
}

detail::ExampleSource::~ExampleSource() = default;
detail::ModuleTree::~ModuleTree() = default;

namespace driver {

Front::~Front() = default;

namespace {

constexpr const char* kGradReason =
    "an input requires grad while grad mode is on, and training is not compiled; put a torch::NoGradGuard around the "
    "call";

bool wants_gradients(std::span<const at::Tensor> inputs) {
  if (!c10::GradMode::is_enabled()) return false;
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const at::Tensor& t) { return t.defined() && t.requires_grad(); });
}

std::string reasons_of(const Function& function) {
  std::string text;
  for (const CallReport& f : function.report().fallbacks) text += (text.empty() ? "" : "; ") + f.reason;
  return text;
}

}  // namespace

void run_uncompiled(Function& function, const char* uncompiled_form, const std::string& reason) {
  if (!reason.empty()) function.note_fallback("", uncompiled_form, reason);
  function.count_generic_call();
  if (!function.options().strict) return;
  throw RuntimeError("strict: the call would run " + std::string(uncompiled_form) + ": " +
                     (reason.empty() ? reasons_of(function) : reason));
}

Miss decide_miss(Function& function, std::span<const at::Tensor> inputs, const char* uncompiled_form,
                 std::atomic<bool>& warned) {
  if (wants_gradients(inputs)) {
    if (!warned.exchange(true)) TORCH_WARN("fxjit: ", kGradReason);
    run_uncompiled(function, uncompiled_form, kGradReason);
    return Miss::Uncompiled;
  }
  if (function.is_compiling()) {
    function.count_generic_call();
    return Miss::Uncompiled;
  }
  if (function.wants_recording(inputs)) return Miss::Record;
  run_uncompiled(function, uncompiled_form, "");
  return Miss::Uncompiled;
}

void GivenUp::set(std::string reason) {
  std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
  set_.store(true, std::memory_order_release);
}

void GivenUp::reset() {
  std::lock_guard lock(mutex_);
  set_.store(false, std::memory_order_release);
}

void GivenUp::add_to(Report& report, const char* form) const {
  std::lock_guard lock(mutex_);
  if (set_.load()) report.fallbacks.push_back({"", form, reason_});
}

Report merge_reports(const std::vector<Report>& reports) {
  Report all;
  for (const Report& r : reports) {
    if (all.capture.empty()) all.capture = r.capture;
    all.notes.insert(all.notes.end(), r.notes.begin(), r.notes.end());
    all.specialisations.insert(all.specialisations.end(), r.specialisations.begin(), r.specialisations.end());
    all.fallbacks.insert(all.fallbacks.end(), r.fallbacks.begin(), r.fallbacks.end());
    all.generic_calls += r.generic_calls;
    all.recorded_calls += r.recorded_calls;
  }
  return all;
}

std::vector<at::Tensor> borrow_tensors(std::span<c10::TensorImpl* const> in) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(in.size());
  for (c10::TensorImpl* t : in) {
    // The undefined tensor is a static object without a count.
    tensors.emplace_back(t == c10::UndefinedTensorImpl::singleton()
                             ? at::Tensor()
                             : at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(t)));
  }
  return tensors;
}

void not_single(const fx::Value& structure) {
  throw TypeError("the program returns a " + structure.type_name() + ", not one tensor: use call() or call_values()");
}

at::Tensor single_tensor(const detail::CallResult& r) {
  if (r.structure.is_int()) return r.tensors.at(static_cast<size_t>(r.structure.as_int()));
  if (r.structure.is_none()) return at::Tensor();  // a program may return an undefined tensor
  not_single(r.structure);
}

fx::Value build_value(const detail::CallResult& r) {
  return fx::map_aggregate(r.structure, [&](const fx::Value& leaf) -> fx::Value {
    if (leaf.is_int()) return torch_::from_tensor(r.tensors.at(static_cast<size_t>(leaf.as_int())));
    return leaf.is_none() ? leaf : detail::constant_of(leaf);
  });
}

}  // namespace driver
}  // namespace fxjit::inline v0
