#include "driver/function.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>

#include "driver/background.h"
#include "driver/signature.h"
#include "driver/specialisation.h"
#include "passes/pass.h"
#include "support/dump.h"
#include "support/log.h"
#include "torch/dual.h"
#include "torch/host_table.h"
#include "torch/layout.h"
#include "torch/recorder.h"
#include "torch/type_import.h"

namespace fxjit::inline v0::driver {

Function::Function(Options options, Inputs inputs)
    : options_(std::move(options)), inputs_(std::move(inputs)), list_(std::make_shared<const List>()) {
  passes::check_skips(options_);
  const support::Dump known(options_.dump);  // raises for a stage that there is none of
}

Function::~Function() = default;

Function::Outcome Function::try_call(c10::TensorImpl* const* in, std::span<c10::TensorImpl*> out,
                                     const int64_t* scalars) {
  std::shared_ptr<const List> list = list_.load(std::memory_order_acquire);
  if (list->empty()) return {};
  torch_::HostState state = torch_::host_state();
  std::span<c10::TensorImpl* const> inputs(in, tensor_count());
  if (std::any_of(inputs.begin(), inputs.end(), &torch_::is_dual)) return {};
  for (size_t i = 0; i < list->size(); ++i) {
    const SpecialisationPtr& s = (*list)[i];
    if (s->results > out.size()) continue;
    if (!torch_::run_specialised(s->forward, s->program, inputs, scalars, out.first(s->results), state)) continue;
    s->hits.fetch_add(1, std::memory_order_relaxed);
    if (list->size() > 1) {
      s->last_use.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
      if (i > 0) promote(s);
    }
    // The list keeps it alive: no count is touched.
    Specialisation* found = s.get();
    return {SpecialisationPtr(std::move(list), found), found->outputs, &found->structure};
  }
  return {};
}

// Moves `s` to the front, so that the next call tries it first. Skipped where another thread is at it.
void Function::promote(const SpecialisationPtr& s) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  auto list = std::make_shared<List>(*list_.load());
  auto at = std::find(list->begin(), list->end(), s);
  if (at == list->end()) return;
  std::rotate(list->begin(), at, at + 1);
  list_.store(std::move(list), std::memory_order_release);
}

bool Function::wants_recording(std::span<const at::Tensor> inputs) {
  std::string reason = torch_::tensor_layout().problem;
  for (size_t i = 0; i < inputs.size() && reason.empty(); ++i)
    if (std::string why = torch_::unsupported_reason(inputs[i]); !why.empty()) reason = inputs_.names[i] + ": " + why;
  if (reason.empty()) reason = torch_::install_recorder();
  if (!reason.empty()) {
    note_fallback("", "generic form", reason);
    return false;
  }
  std::lock_guard lock(mutex_);
  uint64_t signature = signature_of(inputs);
  if (std::find(failed_.begin(), failed_.end(), signature) != failed_.end()) return false;
  if (compiled_ >= kMaxCompilations * static_cast<size_t>(options_.max_specialisations)) {
    reason = "the program was specialised " + std::to_string(compiled_) +
             " times for inputs that keep changing; see the option max_specialisations";
    if (note_locked({"", "generic form", reason})) TORCH_WARN("fxjit: ", reason);
    return false;
  }
  return true;
}

void Function::note_fallback(const std::string& node, const std::string& target, const std::string& reason) {
  std::lock_guard lock(mutex_);
  note_locked({node, target, reason});
}

bool Function::note_locked(CallReport note) {
  for (const CallReport& f : report_.fallbacks)
    if (f.node == note.node && f.target == note.target && f.reason == note.reason) return false;
  support::log(support::parse_log_level(options_.log), support::LogLevel::Info,
               "fallback: " + note.node + " " + note.target + ": " + note.reason);
  report_.fallbacks.push_back(std::move(note));
  return true;
}

void Function::publish(SpecialisationPtr s) {
  std::lock_guard lock(mutex_);
  auto list = std::make_shared<List>(*list_.load());
  s->last_use = clock_.fetch_add(1);
  list->insert(list->begin(), s);
  if (list->size() > static_cast<size_t>(std::max<int64_t>(options_.max_specialisations, 1))) {
    auto oldest = std::min_element(list->begin() + 1, list->end(),
                                   [](const auto& a, const auto& b) { return a->last_use < b->last_use; });
    list->erase(oldest);
  }
  ++compiled_;
  if (s->results > max_results_) max_results_.store(s->results, std::memory_order_release);
  list_.store(std::move(list), std::memory_order_release);
}

void Function::fail(uint64_t signature, const std::string& reason) {
  std::lock_guard lock(mutex_);
  failed_.push_back(signature);
  note_locked({"", "generic form", reason});
}

bool Function::is_compiling() const { return options_.background && compiling_ == ::getpid(); }

bool Function::begin_compiling() {
  const pid_t self = ::getpid();
  return compiling_.exchange(self) != self;
}

void Function::wait() const {
  if (options_.background) drain_background();
}

Report Function::report() const {
  std::lock_guard lock(mutex_);
  Report r = report_;
  r.generic_calls = generic_calls_;
  r.recorded_calls = recorded_calls_;
  auto list = list_.load();
  for (auto it = list->rbegin(); it != list->rend(); ++it) {
    r.specialisations.push_back((*it)->report);
    r.specialisations.back().hits = (*it)->hits;
  }
  return r;
}

void Function::set_capture(std::string capture, std::vector<std::string> notes) {
  std::lock_guard lock(mutex_);
  report_.capture = std::move(capture);
  report_.notes = std::move(notes);
}

std::string Function::code() const {
  auto list = list_.load();
  std::string text;
  for (auto it = list->rbegin(); it != list->rend(); ++it)
    text += "; ---- specialisation: " + (*it)->report.inputs + " ----\n" + (*it)->print_llvm() + "\n";
  return text;
}

void Function::reset() {
  std::lock_guard lock(mutex_);
  list_.store(std::make_shared<const List>(), std::memory_order_release);
  failed_.clear();
  compiled_ = 0;
  report_.fallbacks.clear();
}

}  // namespace fxjit::inline v0::driver
