// A host for the specialised form of `forward`, without torch: tensors are structs of our own, kernels are functions.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "codegen/forward/specialised_plan.h"
#include "fake_tensors.h"
#include "fxjit/fx/graph.h"
#include "jit/forward_jit.h"
#include "runtime/abi.h"

namespace fxjit::test {

// What a kernel was launched with.
inline float* buffer(void* ctx, int i) { return static_cast<float*>(static_cast<fxjit_launch*>(ctx)->pointers[i]); }
inline int64_t extent(void* ctx, int axis = 0) { return static_cast<fxjit_launch*>(ctx)->extents[axis]; }

class SpecialisedHost {
 public:
  SpecialisedHost(fx::GraphPtr graph, std::shared_ptr<ShapeEnv> env, codegen::ForwardInputs inputs)
      : inputs_(std::move(inputs)), graph_(std::move(graph)), env_(std::move(env)) {
    inputs_.layout = FakeTensor::layout();
    plan_ = codegen::plan_specialised(*graph_, *env_, inputs_);
  }

  // Functions for kernels by node; the second one for its nontemporal variant.
  std::map<const fx::Node*, std::pair<fxjit_kernel, fxjit_kernel>> kernels;
  // What calls through the table do, by the callee's name; the result is put into the node's slot.
  std::map<std::string, std::function<FakeTensor*(SpecialisedHost&, const fx::Node&)>> callees;
  std::string failing_callee;
  std::vector<std::string> ran;  // callees, in order, and "empty", "data", "release"
  std::vector<uint64_t> words;
  std::vector<int64_t> symbols;
  int left_behind = 0;

  const codegen::SpecialisedPlan& plan() const { return plan_; }
  std::string text() const { return jit::specialised_ir(*graph_, *env_, inputs_, plan_); }

  fxjit_status run(const std::vector<FakeTensor*>& in, std::vector<int64_t> scalars = {}) {
    if (arena_.empty()) {
      arena_.resize(1 << 24);  // large enough: fxjit_arena_reserve only grows frames of the runtime's pool
      const auto base = reinterpret_cast<uintptr_t>(arena_.data());
      frame_.arena = reinterpret_cast<char*>((base + 63) & ~uintptr_t{63});
      frame_.arena_bytes = arena_.size() - 64;
    }
    return run_in(frame_, in, std::move(scalars));
  }
  void set_threads(int32_t threads, fxjit_parallel_for parallel) {
    frame_.threads = threads;
    frame_.parallel = parallel;
  }

  // The same in a frame of the caller's.
  fxjit_status run_in(fxjit_frame& frame, const std::vector<FakeTensor*>& in, std::vector<int64_t> scalars = {}) {
    if (!compiled_.function) compile();
    frame.table = &table();
    outputs.clear();
    ran.clear();
    slots_.assign(static_cast<size_t>(plan_.slots), nullptr);
    symbols.assign(static_cast<size_t>(plan_.symbols), -77);
    frame.slots = slots_.data();
    frame.symbols = symbols.data();
    frame.words = words.data();
    frame.program = this;
    scalars.resize(static_cast<size_t>(plan_.inputs) + 1);
    std::vector<fxjit_value> out(plan_.outputs.size(), nullptr);
    const fxjit_status status =
        compiled_.function(&frame, reinterpret_cast<const fxjit_value*>(in.data()), scalars.data(), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      auto* t = static_cast<FakeTensor*>(out[i]);
      if (t && plan_.outputs[i].owned) outputs.emplace_back(t);
      if (t && !plan_.outputs[i].owned) borrowed.push_back(t);
    }
    left_behind = 0;
    for (int32_t i = plan_.inputs; i < plan_.slots; ++i) {
      if (!slots_[i]) continue;
      ++left_behind;
      delete static_cast<FakeTensor*>(slots_[i]);
    }
    return status;
  }
  std::vector<TensorPtr> outputs;  // owned ones, in order
  std::vector<FakeTensor*> borrowed;

  FakeTensor* tensor(const fx::Node& n) { return static_cast<FakeTensor*>(slots_[plan_.slot_of(n)]); }

 private:
  static const fxjit_table& table() {
    static constexpr fxjit_table table{&SpecialisedHost::call, &SpecialisedHost::release, &SpecialisedHost::empty,
                                       &SpecialisedHost::data};
    return table;
  }

  void compile() {
    std::vector<fxjit_kernel> functions(2 * plan_.steps.size(), nullptr);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto it = kernels.find(plan_.steps[i].node);
      if (it == kernels.end()) continue;
      functions[2 * i] = it->second.first;
      functions[2 * i + 1] = it->second.second;
    }
    compiled_ = jit::compile_specialised(
        *graph_, *env_, inputs_, plan_, functions,
        {&table(), [](void* t) { return static_cast<FakeTensor*>(t)->autograd != nullptr; }}, jit::baseline_target());
  }

  static SpecialisedHost& host_of(fxjit_frame* frame) {
    return *static_cast<SpecialisedHost*>(const_cast<void*>(frame->program));
  }

  static fxjit_status call(fxjit_frame* frame, int32_t index) {
    SpecialisedHost& host = host_of(frame);
    const codegen::SpecialisedStep& step = host.plan_.steps[index];
    const std::string name(step.node->callable().qualified_name());
    host.ran.push_back(name);
    if (name == host.failing_callee) return FXJIT_ERROR;
    FakeTensor* result = host.callees.at(name)(host, *step.node);
    host.fill(host.plan_.values[step.results.at(0)].index, result);
    return FXJIT_OK;
  }

  static void release(fxjit_frame* frame, int32_t slot) {
    host_of(frame).ran.push_back("release");
    delete static_cast<FakeTensor*>(frame->slots[slot]);
    frame->slots[slot] = nullptr;
  }

  static fxjit_status empty(fxjit_frame* frame, int32_t slot, int32_t dtype, int32_t rank, const int64_t* sizes,
                            const int64_t* strides, void** data) {
    SpecialisedHost& host = host_of(frame);
    host.ran.push_back("empty");
    auto* t = new FakeTensor(static_cast<DType>(dtype), {sizes, sizes + rank}, {strides, strides + rank});
    host.fill(slot, t);
    *data = t->data<char>();
    return FXJIT_OK;
  }

  static void* data(fxjit_frame* frame, int32_t slot) {
    host_of(frame).ran.push_back("data");
    auto* t = static_cast<FakeTensor*>(frame->slots[slot]);
    return static_cast<char*>(t->storage->data) + t->storage_offset * size_of(static_cast<DType>(t->dtype));
  }

  void fill(int32_t slot, FakeTensor* t) {
    if (slots_.at(slot)) std::abort();  // the plan put two values into one slot
    slots_[slot] = t;
  }

  codegen::ForwardInputs inputs_;
  fx::GraphPtr graph_;
  std::shared_ptr<ShapeEnv> env_;
  codegen::SpecialisedPlan plan_;
  jit::CompiledForward<fxjit_specialised> compiled_;
  fxjit_frame frame_{};
  std::vector<fxjit_value> slots_;
  std::vector<char> arena_;
};

}  // namespace fxjit::test
