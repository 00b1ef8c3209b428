// The dispatch recorder: sees every ATen call of this thread before autograd, autocast and decomposition, and lets it
// run. What it keeps is data only; tensors are known by weak references, so the recorded run behaves as any other.
//
//   Recorder recorder({.has_row = …});
//   recorder.add_input(x);
//   {
//     RecordingGuard on(recorder);
//     recorder.begin_scope(node_id);
//     … run …
//   }
//   auto program = import_record(recorder, outputs, {});       // import_record.h
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "torch/tensor_info.h"

namespace fxjit::inline v0::torch_ {

using ValueId = int32_t;

enum class Origin : uint8_t {
  Input,
  Attribute,
  Result,
  Unknown,  // came from outside of the dispatcher: the scope that brought it in must be run again at each call
};

struct RecordedValue {
  Origin origin = Origin::Unknown;
  int32_t index = -1;    // number of the input or attribute; of the call that made it
  int32_t result = -1;   // Result: its place among the call's tensors, lists flattened
  int32_t scope = -1;    // where it was first seen
  int32_t storage = -1;  // values with one number share memory
  TensorInfo info;       // as first seen
};

struct RecordedArg {
  enum Kind : uint8_t { Constant, Tensor, List } kind = Constant;
  c10::IValue constant;  // holds no tensor; a wrapped number is a Scalar here, though the schema says Tensor
  ValueId value = -1;
  std::vector<RecordedArg> items;
};

enum CallFlag : uint32_t {
  kDataRead = 1u << 0,      // hands data to the host: item, is_nonzero, tolist …
  kDynamicShape = 1u << 1,  // the result's sizes depend on data
  kRandom = 1u << 2,        // draws from a generator
  kMutates = 1u << 3,       // writes an argument
  kMetadata = 1u << 4,      // changes sizes, strides or storage of an argument: t_, resize_, set_
  kUnknownInput = 1u << 5,  // an argument of unknown origin
  kChangedInput = 1u << 6,  // an argument whose metadata changed outside of the dispatcher
  kAutocast = 1u << 7,      // autocast was on
  kOpaqueValue = 1u << 8,   // an argument or result that is no plain value: dict, object, generator
};

struct RecordedCall {
  c10::OperatorHandle op;
  int32_t scope;
  uint32_t flags;
  uint64_t host_flags;            // host_state.h
  std::vector<RecordedArg> args;  // in the order of the schema
  std::vector<RecordedArg> results;
  std::string name() const;  // "aten::add.Tensor"
};

struct RecorderOptions {
  // Whether there is a row for the operator ("aten::linear"; overload included: "aten::add.Tensor"). Composites without
  // one run with the recorder on. Empty: every operator counts as having one.
  std::function<bool(std::string_view)> has_row;
  // Called before each operator is noted; for tests, it may throw.
  std::function<void()> probe;
};

class Recorder {
 public:
  explicit Recorder(RecorderOptions options = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Known tensors, before recording. One tensor has one id, that of its first registration.
  ValueId add_input(const at::Tensor& t);
  ValueId add_attribute(const at::Tensor& t, std::string path);

  // Calls from now on belong to this scope (an FX node's id); -1 after end_scope.
  void begin_scope(int32_t id) { scope_ = id; }
  void end_scope() { scope_ = -1; }

  const std::vector<RecordedCall>& calls() const { return calls_; }
  const std::vector<RecordedValue>& values() const { return values_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  struct AttributeRecord {
    std::string path;
    ValueId value;
    at::Tensor tensor;
  };
  const std::vector<AttributeRecord>& attributes() const { return attributes_; }
  // Composite operators whose interior was recorded in their place: what they computed from sizes is a constant there.
  const std::set<std::string>& composites() const { return composites_; }
  // -1 for a tensor that was never seen, or that has died.
  ValueId find(const at::Tensor& t) const;
  // The tensor behind a value; undefined once it has died.
  at::Tensor tensor(ValueId id) const;

  // Rethrows what failed while operators were noted. They ran all the same, but the record is of no use.
  void check() const;

  // The handler's part: runs `op` on the stack and records it. `below` are the keys under the recorder's.
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet below, std::vector<c10::IValue>* stack);

 private:
  struct Table;
  ValueId add(const at::Tensor& t, Origin origin, int32_t index, int32_t result);
  ValueId lookup(const at::Tensor& t, uint32_t* flags);
  RecordedArg argument(const c10::IValue& v, uint32_t* flags);
  RecordedArg result(const c10::IValue& v, int32_t call, int32_t* place, uint32_t* flags);
  bool runs_through(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack) const;
  template <class F>
  void observe(F f);
  RecordedCall begin_call(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);
  void end_call(RecordedCall call, const std::vector<c10::IValue>& stack);
  void refresh_metadata(const RecordedArg& arg, const c10::IValue& v, uint32_t* flags);

  RecorderOptions options_;
  int32_t scope_ = -1;
  std::vector<RecordedCall> calls_;
  std::vector<RecordedValue> values_;
  std::vector<ValueId> inputs_;
  std::vector<AttributeRecord> attributes_;
  std::set<std::string> composites_;
  std::unique_ptr<Table> table_;
  std::exception_ptr failure_;
};

// Turns the recorder on for this thread. RuntimeError where the fallback cannot be installed (another library has one
// on the same key) or a recorder is on already.
class RecordingGuard {
 public:
  explicit RecordingGuard(Recorder& recorder);
  ~RecordingGuard();
  RecordingGuard(const RecordingGuard&) = delete;
  RecordingGuard& operator=(const RecordingGuard&) = delete;
};

// True while a recorder is on in this thread: compiled callables then run their dispatched path.
bool is_recording();

// Turns an active recorder off for a moment (what the tracing machinery itself does to tensors is not the program's).
class PauseRecording {
 public:
  PauseRecording();
  ~PauseRecording();
  PauseRecording(const PauseRecording&) = delete;
  PauseRecording& operator=(const PauseRecording&) = delete;

 private:
  bool was_on_;
};

// Empty once the boxed fallback is installed; else why it cannot be.
std::string install_recorder();

}  // namespace fxjit::inline v0::torch_
