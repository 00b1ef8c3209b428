#include "driver/example_front.h"

#include "driver/tensor_call.h"
#include "fxjit/torch/values.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::driver {
namespace {

constexpr const char* kEager = "eager";
// States of a module (its training flags) beyond this many share nothing any more: the oldest goes.
constexpr size_t kMaxVariants = 8;

uint32_t holders_of(const at::Tensor& t) { return c10::raw::intrusive_ptr::use_count(t.unsafeGetTensorImpl()); }

}  // namespace

// A member of a module that is assigned another tensor, and a submodule that is replaced, drop a reference to what the
// module registered: then it is read again. A drop for another reason costs one compilation.
bool ExampleFront::Variant::attributes_held() const {
  for (size_t i = 0; i < attributes.size(); ++i)
    if (holders_of(attributes[i]) < holders[i]) return false;
  return true;
}

ExampleFront::ExampleFront(std::unique_ptr<detail::ExampleSource> source, Options options)
    : source_(std::move(source)),
      arity_(source_->arity()),
      options_(std::move(options)),
      variants_(std::make_shared<const List>()) {}

ExampleFront::~ExampleFront() = default;

const ExampleFront::Variant* ExampleFront::current(const List& list) const {
  if (list.empty()) return nullptr;
  const uint64_t state = source_->state();
  for (const VariantPtr& v : list)
    if (v->state == state) return v->attributes_held() ? v.get() : nullptr;
  return nullptr;
}

at::Tensor ExampleFront::call_tensor(std::span<c10::TensorImpl* const> in) {
  check_arity(in.size());
  const std::shared_ptr<const List> list = variants_.load(std::memory_order_acquire);
  if (const Variant* v = current(*list)) {
    TensorCall call(*v->function, in, v->attributes);
    if (call.run()) {
      if (call.is_single()) return call.take_single();
      return single_tensor(call.result());
    }
  }
  return single_tensor(call_slow(in));
}

detail::CallResult ExampleFront::call_tensors(std::span<c10::TensorImpl* const> in) {
  check_arity(in.size());
  const std::shared_ptr<const List> list = variants_.load(std::memory_order_acquire);
  if (const Variant* v = current(*list)) {
    TensorCall call(*v->function, in, v->attributes);
    if (call.run()) return call.result();
  }
  return call_slow(in);
}

fx::Value ExampleFront::call_values(std::span<const fx::Value> args, const fx::Value& kwargs) {
  if (!kwargs.is_none() && kwargs.size() > 0)
    throw TypeError("a C++ function takes no keyword arguments: its parameters have no names here");
  std::vector<at::Tensor> tensors;
  for (const fx::Value& v : args) tensors.push_back(to_tensor(v));
  std::vector<c10::TensorImpl*> in;
  for (const at::Tensor& t : tensors) in.push_back(t.unsafeGetTensorImpl());
  return build_value(call_tensors(in));
}

void ExampleFront::check_arity(size_t given) const {
  if (C10_LIKELY(given == arity_)) return;
  throw TypeError("the compiled " + source_->name() + " takes " + std::to_string(arity_) + " tensors but " +
                  std::to_string(given) + " were given");
}

detail::CallResult ExampleFront::run(std::vector<at::Tensor>& tensors) {
  detail::CallResult r;
  r.structure = source_->run(tensors, r.tensors);
  return r;
}

detail::CallResult ExampleFront::call_slow(std::span<c10::TensorImpl* const> in) {
  std::vector<at::Tensor> tensors = borrow_tensors(in);
  if (Recording::active()) return run(tensors);
  VariantPtr v = variant_for(source_->state());
  std::vector<at::Tensor> inputs = tensors;
  inputs.insert(inputs.end(), v->attributes.begin(), v->attributes.end());
  if (decide_miss(*v->function, inputs, kEager, warned_) == Miss::Uncompiled) return run(tensors);
  std::unique_lock lock(recording_, std::try_to_lock);
  if (!lock) {
    v->function->count_generic_call();
    return run(tensors);
  }
  return record(*v, tensors, std::move(inputs));
}

detail::CallResult ExampleFront::record(const Variant& v, std::vector<at::Tensor>& tensors,
                                        std::vector<at::Tensor> inputs) {
  Recording recording(v.function, std::move(inputs));
  recording.begin_scope(source_->name(), /*bakes_sizes=*/true);
  detail::CallResult r = run(tensors);  // an exception leaves nothing behind: the next call is recorded again
  recording.end_scope();
  recording.finish(r.tensors, r.structure);
  return r;
}

ExampleFront::VariantPtr ExampleFront::make_variant(uint64_t state) {
  auto v = std::make_shared<Variant>();
  v->state = state;
  std::vector<std::string> names;
  for (size_t i = 0; i < arity_; ++i) names.push_back("x" + std::to_string(i));
  for (detail::NamedTensor& a : source_->attributes()) {
    names.push_back("attribute " + a.name);
    v->attributes.push_back(std::move(a.tensor));
  }
  for (const at::Tensor& t : v->attributes) v->holders.push_back(holders_of(t));
  v->function = std::make_shared<Function>(options_, std::move(names));
  v->function->set_capture(v->attributes.empty() ? "function by example" : source_->name() + " by example", {});
  return v;
}

ExampleFront::VariantPtr ExampleFront::variant_for(uint64_t state) {
  std::lock_guard lock(build_);
  auto list = std::make_shared<List>(*variants_.load());
  for (auto it = list->begin(); it != list->end(); ++it) {
    if ((*it)->state != state) continue;
    if ((*it)->attributes_held()) return *it;
    list->erase(it);
    break;
  }
  list->insert(list->begin(), make_variant(state));
  if (list->size() > kMaxVariants) list->pop_back();
  VariantPtr made = list->front();
  variants_.store(std::move(list), std::memory_order_release);
  return made;
}

Report ExampleFront::report() {
  std::vector<Report> reports;
  auto list = variants_.load();
  for (auto it = list->rbegin(); it != list->rend(); ++it) reports.push_back((*it)->function->report());
  Report r = merge_reports(reports);
  if (r.capture.empty()) r.capture = "nothing was called yet";
  return r;
}

std::string ExampleFront::code() {
  std::string text;
  auto list = variants_.load();
  for (auto it = list->rbegin(); it != list->rend(); ++it) text += (*it)->function->code();
  return text.empty() ? "; no specialisation yet: calls run eagerly\n" : text;
}

void ExampleFront::reset() {
  std::lock_guard lock(build_);
  variants_.store(std::make_shared<const List>(), std::memory_order_release);
}

}  // namespace fxjit::inline v0::driver
