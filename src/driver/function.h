// A compiled callable without its front end: tensors in, tensors out, specialised at need. The Python binding and the
// C++ API put arguments, attributes and structure around it.
//
// A call goes:  try_call  →  done, or a miss;
// on a miss     wants_recording  →  record: run the program under a Recording and finish it, which also is the result;
//               or run the generic form.
#pragma once

#include <ATen/core/Tensor.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/forward/number.h"
#include "driver/report.h"
#include "fxjit/fx/argument.h"
#include "fxjit/options.h"

namespace fxjit::inline v0::driver {

// Where a result comes from.
struct OutputSource {
  enum Kind : uint8_t { Result, Input, Constant } kind = Result;
  int32_t index = 0;  // Result: in the outputs of forward; Input: in the inputs
};

struct Specialisation;
using SpecialisationPtr = std::shared_ptr<Specialisation>;

class FXJIT_API Function : public std::enable_shared_from_this<Function> {
 public:
  // What the inputs are: arguments that are tensors, then attributes of modules, then numbers.
  struct Inputs {
    std::vector<std::string> names;  // for reports
    size_t attributes = 0;           // tensors whose sizes are taken as constants
    size_t numbers = 0;              // ints and floats
  };
  // ValueError where an option names a pass that cannot be left out.
  Function(Options options, Inputs inputs);
  ~Function();

  const Options& options() const { return options_; }
  size_t tensor_count() const { return inputs_.names.size() - inputs_.numbers; }
  size_t number_count() const { return inputs_.numbers; }

  // Results of one call. `results` hold new references; `outputs` and `structure` belong to the specialisation.
  struct Outcome {
    SpecialisationPtr specialisation;  // null: no specialisation fits, nothing was done
    std::span<const OutputSource> outputs;
    const fx::Value* structure = nullptr;  // Int leaves index `outputs`
  };
  // The hot path. `in` are the tensors, borrowed. `scalars` has a word for each input: bits of the double or int64 at
  // the places of numbers, the others unread; null where there are no numbers. Results are written to `out` as owned
  // references (null where a result is not a tensor of its own). Specialisations with more results than `out` holds are
  // passed over: another thread may publish one after max_results() was asked. Exceptions of callees come through
  // unchanged.
  Outcome try_call(c10::TensorImpl* const* in, std::span<c10::TensorImpl*> out, const int64_t* scalars = nullptr);
  // The largest number of results of any specialisation so far.
  size_t max_results() const { return max_results_.load(std::memory_order_acquire); }

  // Whether a miss with these inputs is worth a recording; if not the reason is in the report (once).
  bool wants_recording(std::span<const at::Tensor> inputs);
  // Whether a record is being compiled in the background: calls that no specialisation covers run uncompiled until
  // then, which is no fallback.
  bool is_compiling() const;
  // Waits for what is being compiled in the background. Not to be called with the GIL held.
  void wait() const;
  // Adds to the report why a call went elsewhere; each reason once.
  void note_fallback(const std::string& node, const std::string& target, const std::string& reason);
  void count_generic_call() { generic_calls_.fetch_add(1, std::memory_order_relaxed); }

  Report report() const;
  void set_capture(std::string capture, std::vector<std::string> notes);
  // LLVM IR of each specialisation under a heading, newest last.
  std::string code() const;
  // Forgets all specialisations and failures.
  void reset();

 private:
  friend class Recording;
  void publish(SpecialisationPtr s);
  void promote(const SpecialisationPtr& s);
  void fail(uint64_t signature, const std::string& reason);
  bool begin_compiling();  // false: a thread was first
  void end_compiling() { compiling_ = 0; }
  bool note_locked(CallReport note);  // whether it is new

  // Beyond this many times max_specialisations compilations, inputs change faster than compiling pays.
  static constexpr size_t kMaxCompilations = 4;

  using List = std::vector<SpecialisationPtr>;
  Options options_;
  Inputs inputs_;
  std::atomic<std::shared_ptr<const List>> list_;  // replaced whole; readers keep what they run alive
  std::atomic<size_t> max_results_{0};
  std::atomic<int64_t> generic_calls_{0}, recorded_calls_{0};
  std::atomic<uint64_t> clock_{0};
  std::atomic<pid_t> compiling_{0};  // the process that does so: the child of a fork never sees its parent's end
  mutable std::mutex mutex_;         // the rest
  std::vector<uint64_t> failed_;
  size_t compiled_ = 0;
  Report report_;
};

// One recorded call. Construct with the inputs, run the program inside scopes while this is active on the thread, then
// finish with its results. Not active beyond finish or destruction.
class FXJIT_API Recording {
 public:
  // A number among the inputs, with the bits of a double or an int64.
  struct Number {
    bool is_float;
    uint64_t bits;
  };
  Recording(std::shared_ptr<Function> function, std::vector<at::Tensor> inputs, std::vector<Number> numbers = {});
  ~Recording();

  // Whether a recorder is on in this thread: a compiled callable then runs its program uncompiled.
  static bool active();

  // A node of the program. `bakes_sizes`: its callee may look at sizes and hand on what it saw, so that the record is
  // good for these sizes only.
  void begin_scope(std::string_view node, bool bakes_sizes);
  // In a scope: numbers (by index) and the other ints and floats among the callee's arguments. `binds`: the callee
  // hands its arguments to operators and does nothing else with them; otherwise the record is good for the numbers'
  // values only.
  void use_numbers(std::vector<int32_t> numbers, std::vector<double> literals, bool binds);
  // Another number, which the program computes from numbers by float arithmetic. Returns its index.
  int32_t derive_number(codegen::NumberExpr expr, double value);
  void end_scope();
  // The record cannot be compiled; the first reason counts.
  void refuse(std::string reason);

  // Stops recording and compiles, with the option `background` on another thread. `outputs` are the result's tensors,
  // `structure` its shape with Int leaves that index them; other leaves are constants. Never throws for what it cannot
  // compile: that is noted in the report, unless the option `strict` is set (RuntimeError with the reason).
  void finish(std::vector<at::Tensor> outputs, fx::Value structure);

 private:
  struct Task;
  struct Impl;
  static std::optional<std::string> reason_against(Task& task);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fxjit::inline v0::driver
