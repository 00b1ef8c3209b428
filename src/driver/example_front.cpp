#include "driver/example_front.h"

#include "driver/tensor_call.h"
#include "fxjit/torch/values.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::driver {
namespace {

constexpr const char* kEager = "eager";
// Sets of training flags beyond this many share nothing any more: the oldest goes.
constexpr size_t kMaxVariants = 8;

uint32_t holders_of(const at::Tensor& t) { return c10::raw::intrusive_ptr::use_count(t.unsafeGetTensorImpl()); }

}  // namespace

// A member of a module that is assigned another tensor, and a submodule that is replaced, drop a reference to what the
// module registered: then it is read again. A drop for another reason costs one compilation.
bool ExampleFront::Attributes::held() const {
  if (tree && !tree->held()) return false;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (holders_of(tensors[i]) < holders[i]) return false;
  return true;
}

const ExampleFront::Variant* ExampleFront::State::current() const {
  const uint64_t flags = attributes->flags();
  for (const Variant& v : variants)
    if (v.flags == flags) return attributes->held() ? &v : nullptr;
  return nullptr;
}

ExampleFront::ExampleFront(std::unique_ptr<detail::ExampleSource> source, Options options)
    : source_(std::move(source)), arity_(source_->arity()), options_(std::move(options)) {}

ExampleFront::~ExampleFront() = default;

template <class Take>
bool ExampleFront::try_call(std::span<c10::TensorImpl* const> in, Take take) {
  const StatePtr state = state_.load(std::memory_order_acquire);
  const Variant* v = state ? state->current() : nullptr;
  if (!v) return false;
  TensorCall call(*v->function, in, state->attributes->tensors);
  if (!call.run()) return false;
  take(call);
  return true;
}

at::Tensor ExampleFront::call_tensor(std::span<c10::TensorImpl* const> in) {
  check_arity(in.size());
  at::Tensor y;
  auto take = [&y](TensorCall& call) { y = call.is_single() ? call.take_single() : single_tensor(call.result()); };
  if (try_call(in, take)) return y;
  return single_tensor(call_slow(in));
}

detail::CallResult ExampleFront::call_tensors(std::span<c10::TensorImpl* const> in) {
  check_arity(in.size());
  detail::CallResult r;
  if (try_call(in, [&r](TensorCall& call) { r = call.result(); })) return r;
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
  if (Recording::active() || given_up_) return run(tensors);
  std::shared_ptr<const Attributes> attributes;
  Variant v;
  if (!given_up_.attempt(options_, [&] { v = variant_now(attributes); })) return run(tensors);
  std::vector<at::Tensor> inputs = tensors;
  inputs.insert(inputs.end(), attributes->tensors.begin(), attributes->tensors.end());
  if (decide_miss(*v.function, inputs, kEager, warned_) == Miss::Uncompiled) return run(tensors);
  std::unique_lock lock(recording_, std::try_to_lock);
  if (!lock) {
    v.function->count_generic_call();
    return run(tensors);
  }
  return record(v.function, tensors, std::move(inputs));
}

detail::CallResult ExampleFront::record(std::shared_ptr<Function> function, std::vector<at::Tensor>& tensors,
                                        std::vector<at::Tensor> inputs) {
  Recording recording(std::move(function), std::move(inputs));
  recording.begin_scope(source_->name(), /*bakes_sizes=*/true);
  detail::CallResult r = run(tensors);  // an exception leaves nothing behind: the next call is recorded again
  recording.end_scope();
  recording.finish(r.tensors, r.structure);
  return r;
}

std::shared_ptr<const ExampleFront::Attributes> ExampleFront::read_attributes() {
  auto a = std::make_shared<Attributes>();
  a->tree = source_->tree();
  if (!a->tree) return a;
  for (const detail::NamedTensor& n : a->tree->attributes) a->tensors.push_back(n.tensor);
  for (const at::Tensor& t : a->tensors) a->holders.push_back(holders_of(t));
  return a;
}

std::shared_ptr<Function> ExampleFront::make_function(const Attributes& attributes) {
  std::vector<std::string> names;
  for (size_t i = 0; i < arity_; ++i) names.push_back("x" + std::to_string(i));
  if (attributes.tree)
    for (const detail::NamedTensor& a : attributes.tree->attributes) names.push_back("attribute " + a.name);
  const size_t count = names.size() - arity_;
  auto function = std::make_shared<Function>(options_, Function::Inputs{std::move(names), count, 0});
  function->set_capture(source_->name() + " by example", {});
  return function;
}

ExampleFront::Variant ExampleFront::variant_now(std::shared_ptr<const Attributes>& attributes) {
  std::lock_guard lock(build_);
  State next;
  support::fault_point(options_, "capture");
  if (StatePtr now = state_.load()) {
    if (const Variant* v = now->current()) {
      attributes = now->attributes;
      return *v;
    }
    if (now->attributes->held()) next = *now;
  }
  if (!next.attributes) {
    state_.store(nullptr);  // references of ours to what was there before must not be counted
    next.attributes = read_attributes();
  }
  attributes = next.attributes;
  next.variants.insert(next.variants.begin(), {attributes->flags(), make_function(*attributes)});
  if (next.variants.size() > kMaxVariants) next.variants.pop_back();
  Variant made = next.variants.front();
  state_.store(std::make_shared<const State>(std::move(next)), std::memory_order_release);
  return made;
}

Report ExampleFront::report() {
  std::vector<Report> reports;
  if (const StatePtr state = state_.load())
    for (auto it = state->variants.rbegin(); it != state->variants.rend(); ++it)
      reports.push_back(it->function->report());
  Report r = merge_reports(reports);
  if (r.capture.empty()) r.capture = "nothing was called yet";
  given_up_.add_to(r, kEager);
  return r;
}

std::string ExampleFront::code() {
  std::string text;
  if (const StatePtr state = state_.load())
    for (auto it = state->variants.rbegin(); it != state->variants.rend(); ++it) text += it->function->code();
  return text.empty() ? "; no specialisation yet: calls run eagerly\n" : text;
}

void ExampleFront::reset() {
  std::lock_guard lock(build_);
  state_.store(nullptr, std::memory_order_release);
  given_up_.reset();
}

}  // namespace fxjit::inline v0::driver
