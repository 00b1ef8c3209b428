// A host for the generic form of `forward`, without torch or Python: values are boxed fx::Values that are counted.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/forward/forward_plan.h"
#include "fxjit/fx/graph.h"
#include "jit/forward_jit.h"
#include "runtime/abi.h"

namespace fxjit::test {

struct Box {
  static inline int live = 0;
  static inline int peak = 0;
  fx::Value value;
  explicit Box(fx::Value v) : value(std::move(v)) { peak = std::max(peak, ++live); }
  ~Box() { --live; }
};

class GenericHost {
 public:
  explicit GenericHost(const fx::Graph& graph) : plan_(codegen::plan_generic(graph)) {
    static constexpr fxjit_table table{&GenericHost::call, &GenericHost::release, nullptr, nullptr};
    compiled_ = jit::compile_generic(graph, plan_, {&table, nullptr}, jit::baseline_target());
    frame_.table = &table;
  }

  std::map<std::string, fx::Value> attributes;  // of get_attr nodes
  std::string failing_node;                     // its callee returns FXJIT_ERROR
  std::vector<std::string> ran;                 // names of nodes, in order
  const codegen::ForwardPlan& plan() const { return plan_; }

  // The value of the output, or None. `status` receives what forward returned.
  fx::Value run(const std::vector<fx::Value>& inputs, fxjit_status* status = nullptr) {
    std::vector<std::unique_ptr<Box>> boxes;
    std::vector<fxjit_value> in;
    for (const fx::Value& v : inputs) {
      boxes.push_back(std::make_unique<Box>(v));
      in.push_back(boxes.back().get());
    }
    Box::peak = Box::live;
    ran.clear();
    slots_.assign(static_cast<size_t>(plan_.slots), nullptr);
    frame_.slots = slots_.data();
    frame_.program = this;
    fxjit_value out = nullptr;
    const fxjit_status s = compiled_.function(&frame_, in.data(), &out);
    if (status) *status = s;
    left_behind = 0;
    for (int32_t i = plan_.inputs; i < plan_.slots; ++i) {
      if (!slots_[i]) continue;
      ++left_behind;
      release(&frame_, i);
    }
    fx::Value result = out ? static_cast<Box*>(out)->value : fx::Value();
    delete static_cast<Box*>(out);
    return result;
  }
  int left_behind = 0;  // owned slots that forward had not emptied

 private:
  fx::Value load(const fx::Argument& a) {
    return fx::map_arg(
        a, [&](fx::Node* n) -> fx::Argument { return static_cast<Box*>(slots_[plan_.step_of(*n).slot])->value; });
  }

  static fxjit_status call(fxjit_frame* frame, int32_t index) {
    auto& host = *static_cast<GenericHost*>(const_cast<void*>(frame->program));
    const codegen::ForwardStep& step = host.plan_.steps[index];
    const fx::Node& n = *step.node;
    host.ran.emplace_back(n.name());
    if (n.name() == host.failing_node) return FXJIT_ERROR;
    fx::Value result;
    if (n.op() == fx::Opcode::GetAttr) {
      result = host.attributes.at(std::string(n.target_str()));
    } else if (n.op() == fx::Opcode::Output) {
      result = host.load(n.arg(0));
    } else {
      const fx::Value args = host.load(n.args());
      result = n.callable().call(args.items(), host.load(n.kwargs()));
    }
    if (host.slots_[step.slot]) std::abort();  // the plan put two values into one slot
    host.slots_[step.slot] = new Box(std::move(result));
    return FXJIT_OK;
  }

  static void release(fxjit_frame* frame, int32_t slot) {
    delete static_cast<Box*>(frame->slots[slot]);
    frame->slots[slot] = nullptr;
  }

  codegen::ForwardPlan plan_;
  jit::CompiledForward<fxjit_generic> compiled_;
  fxjit_frame frame_{};
  std::vector<fxjit_value> slots_;
};

}  // namespace fxjit::test
