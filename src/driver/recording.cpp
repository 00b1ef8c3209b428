#include <algorithm>
#include <bit>

#include "driver/background.h"
#include "driver/compile.h"
#include "driver/function.h"
#include "driver/signature.h"
#include "driver/size_blind.h"
#include "passes/infer.h"
#include "support/fault.h"
#include "support/log.h"
#include "torch/import_record.h"
#include "torch/recorder.h"

namespace fxjit::inline v0::driver {
namespace {

// What passes know stays whole, matmul and softmax too: one call, whose sizes stay symbols.
bool has_row(std::string_view schema) { return passes::has_rule(schema); }

}  // namespace

// A record on its way to a specialisation, without the recorded call's tensors.
struct Recording::Task {
  std::shared_ptr<Function> function;
  CompileRequest request;
  std::vector<std::string> scopes;
  fx::Value structure;
  torch_::TypedProgram program;

  // Failure with the reason where it cannot be compiled; RuntimeError where the option `strict` forbids the outcome.
  Result<void> run() {
    auto s = compile(std::move(program), std::move(request));
    if (!s) return s.failure();
    Specialisation& made = **s;
    if (function->options().strict && !made.report.aten_calls.empty()) {
      const CallReport& call = made.report.aten_calls.front();
      throw RuntimeError("strict: " + call.node + " (" + call.target + ") would be an ATen call" +
                         (call.reason.empty() ? "" : ": " + call.reason));
    }
    made.structure = std::move(structure);
    made.report.scope_names = std::move(scopes);
    function->publish(*std::move(s));
    return {};
  }
};

struct Recording::Impl {
  std::shared_ptr<Function> function;
  std::vector<at::Tensor> inputs;
  std::vector<bool> required_grad;  // by input, before the call
  uint64_t signature;
  CompileRequest request;
  torch_::Recorder recorder;
  std::unique_ptr<torch_::RecordingGuard> on;
  std::vector<std::string> scopes;
  support::Timer timer;
  bool bakes_sizes = false;
  std::string refusal;
  std::exception_ptr failure;
  torch_::NumberTable numbers;

  Impl(std::shared_ptr<Function> f, std::vector<at::Tensor> tensors, const std::vector<Number>& given)
      : function(std::move(f)),
        inputs(std::move(tensors)),
        signature(signature_of(inputs)),
        request{function->options_, function->inputs_.names, {}, torch_::host_state(), {}},
        recorder({&has_row, [f = function.get()] { support::fault_point(f->options(), "observe"); }}) {
    attempt([&] {
      support::fault_point(options(), "record");
      for (const at::Tensor& t : inputs) {
        required_grad.push_back(t.requires_grad());
        request.key_sets.push_back(t.key_set().raw_repr());
        recorder.add_input(t);
      }
      for (const Number& n : given) numbers.numbers.push_back({n.is_float, n.bits, std::nullopt});
      on = std::make_unique<torch_::RecordingGuard>(recorder);
    });
  }

  const Options& options() const { return function->options_; }

  // A part of taking notes: where it fails the program runs on, and the record is refused at its end.
  template <class F>
  void attempt(F f) {
    if (failure) return;
    try {
      f();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  }

  Result<Task> import(std::span<const at::Tensor> outputs, fx::Value structure) {
    if (failure) std::rethrow_exception(failure);
    recorder.check();
    if (!refusal.empty()) return Failure{refusal};
    if (sets_requires_grad(outputs)) return Failure{"the program sets requires_grad, which is no operation"};
    support::fault_point(options(), "import");
    support::Timer import_timer;
    torch_::ImportOptions import;
    bakes_sizes |= !first_that_bakes_sizes(recorder.composites()).empty();
    const size_t arguments = inputs.size() - function->inputs_.attributes;
    for (size_t i = 0; i < arguments && !bakes_sizes; ++i)
      import.dynamic_sizes.emplace_back(static_cast<size_t>(inputs[i].dim()), uint8_t{1});
    import.numbers = &numbers;
    auto program = torch_::import_record(recorder, outputs, import);
    if (!program) return Failure{name_scope(program.reason())};
    request.times.add("import", import_timer.milliseconds());
    return Task{function, std::move(request), std::move(scopes), std::move(structure), *std::move(program)};
  }

  // The recorder sees operators; with none of the inputs differentiable, what else can make a result require grad?
  bool sets_requires_grad(std::span<const at::Tensor> outputs) const {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].requires_grad() != required_grad[i]) return true;
    return std::any_of(outputs.begin(), outputs.end(), [this](const at::Tensor& o) {
      return o.requires_grad() &&
             std::none_of(inputs.begin(), inputs.end(), [&o](const at::Tensor& t) { return t.is_same(o); });
    });
  }

  // Reasons speak of scopes by number; the user knows nodes by name.
  std::string name_scope(std::string reason) const {
    size_t at = reason.find("scope ");
    if (at == std::string::npos) return reason;
    size_t end = at + 6;
    while (end < reason.size() && std::isdigit(static_cast<unsigned char>(reason[end]))) ++end;
    size_t index = end > at + 6 ? std::stoul(reason.substr(at + 6, end - at - 6)) : scopes.size();
    return index < scopes.size() ? reason.replace(at, end - at, "node " + scopes[index]) : reason;
  }
};

Recording::Recording(std::shared_ptr<Function> function, std::vector<at::Tensor> inputs, std::vector<Number> numbers)
    : impl_(std::make_unique<Impl>(std::move(function), std::move(inputs), numbers)) {}

Recording::~Recording() = default;

bool Recording::active() { return torch_::is_recording(); }

void Recording::begin_scope(std::string_view node, bool bakes_sizes) {
  impl_->bakes_sizes |= bakes_sizes;
  impl_->recorder.begin_scope(static_cast<int32_t>(impl_->scopes.size()));
  impl_->attempt([&] {
    support::fault_point(impl_->options(), "scope");
    impl_->scopes.emplace_back(node);
  });
}

void Recording::use_numbers(std::vector<int32_t> numbers, std::vector<double> literals, bool binds) {
  const auto scope = static_cast<int32_t>(impl_->scopes.size()) - 1;
  impl_->numbers.scopes[scope] = {std::move(numbers), std::move(literals), binds};
}

int32_t Recording::derive_number(codegen::NumberExpr expr, double value) {
  impl_->numbers.numbers.push_back({true, std::bit_cast<uint64_t>(value), expr});
  return static_cast<int32_t>(impl_->numbers.numbers.size()) - 1;
}

void Recording::end_scope() { impl_->recorder.end_scope(); }

void Recording::refuse(std::string reason) {
  if (impl_->refusal.empty()) impl_->refusal = std::move(reason);
}

void Recording::finish(std::vector<at::Tensor> outputs, fx::Value structure) {
  Impl& r = *impl_;
  r.on.reset();
  r.request.times.add("record", r.timer.milliseconds());
  r.function->recorded_calls_.fetch_add(1, std::memory_order_relaxed);
  const Options& options = r.options();
  std::shared_ptr<void> compiling;  // what it stands for ends with its last holder
  if (options.background) {
    if (!r.function->begin_compiling()) return;  // another thread's record is compiled first
    compiling.reset(static_cast<void*>(nullptr), [function = r.function](void*) { function->end_compiling(); });
  }
  std::string reason;
  try {
    Result<Task> task = r.import(outputs, std::move(structure));
    if (task && options.background) {
      run_in_background([task = std::make_shared<Task>(*std::move(task)), compiling, signature = r.signature] {
        if (auto why = reason_against(*task)) task->function->fail(signature, *why);
      });
      return;
    }
    Result<void> done = task ? task->run() : task.failure();
    if (done) return;
    reason = done.reason();
  } catch (const std::exception&) {
    reason = support::absorb_fault(options);
  }
  r.function->fail(r.signature, reason);
  if (options.strict) throw RuntimeError("strict: the call cannot be compiled: " + reason);
}

// In the background nobody is there to catch: what would be raised is a reason for later calls.
std::optional<std::string> Recording::reason_against(Task& task) {
  try {
    const Result<void> done = task.run();
    return done ? std::nullopt : std::optional(done.reason());
  } catch (const std::exception& e) {
    support::log(support::parse_log_level(task.function->options().log), support::LogLevel::Error, e.what());
    return support::concat("internal error: ", e.what());
  }
}

}  // namespace fxjit::inline v0::driver
