#include "codegen/forward/specialised.h"

#include "codegen/forward/guards.h"
#include "codegen/forward/launch.h"
#include "kernel/kernel_call.h"
#include "runtime/abi.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

class SpecialisedEmitter {
 public:
  SpecialisedEmitter(HostModule& host, const ShapeEnv& env, const ForwardInputs& inputs, const SpecialisedPlan& plan)
      : host_(host), env_(env), inputs_(inputs), plan_(plan) {}

  void run() {
    llvm::Function* forward = define("forward", false);
    host_.comment(forward, summary());
    Body body(host_, forward, env_, inputs_, plan_, false);
    emit_guards(body);
    prologue(body);
    const size_t count = plan_.steps.size();
    if (count <= kStepsPerFunction) {
      steps(body, 0, count);
    } else {
      for (size_t begin = 0; begin < count; begin += kStepsPerFunction) {
        part(body, begin, std::min(begin + kStepsPerFunction, count));
      }
    }
    outputs(body);
    body.f.finish();
  }

 private:
  llvm::Function* define(const std::string& name, bool internal) {
    return host_.define(name, host_.i32(), {"frame", "in", "scalars", "out"}, internal);
  }

  std::string summary() const {
    std::string text;
    for (const ForwardInput& input : inputs_.inputs) {
      if (!input.node) continue;
      text +=
          support::concat("in: ", input.node->name(), " ", input.type ? to_string(env_, *input.type) : "number", "\n");
    }
    return support::concat(text, plan_.steps.size(), " steps, ", plan_.slots, " slots, arena ",
                           env_.to_string(plan_.arena_bytes), " bytes");
  }

  // Inputs into their slots, numbers into frame->symbols, memory for what stays between kernels.
  void prologue(Body& body) {
    for (int32_t i = 0; i < plan_.inputs; ++i) {
      if (plan_.input_needs_slot[i]) body.f.store(body.input_tensor(i), body.slots(), i * kWord);
    }
    if (plan_.symbols > 0) store_symbols(body);
    if (env_.is_const(plan_.arena_bytes, 0)) return;
    auto* type = llvm::FunctionType::get(host_.i32(), {host_.ptr(), host_.i64()}, false);
    llvm::Function* reserve = host_.callee(CalleeKind::Runtime, "fxjit_arena_reserve", type);
    body.f.check(body.ir().CreateCall(reserve, {body.f.frame(), body.dim(plan_.arena_bytes)}, "reserved"));
  }

  void store_symbols(Body& body) {
    llvm::Value* base = body.f.load(host_.ptr(), body.f.frame(), offsetof(fxjit_frame, symbols), "symbols");
    int64_t place = 0;
    for (Dim d : inputs_.callee_dims) body.f.store(body.dim(d), base, kWord * place++);
    for (int32_t n : inputs_.callee_numbers) body.f.store(body.scalar(n), base, kWord * place++);
    if (!plan_.stores_symbols) return;
    for (size_t s = 0; s < env_.symbols().size(); ++s) {
      body.f.store(body.symbol(static_cast<int64_t>(s)), base, kWord * place++);
    }
  }

  void part(Body& caller, size_t begin, size_t end) {
    llvm::Function* function = define("forward.part" + std::to_string(begin / kStepsPerFunction), true);
    Body body(host_, function, env_, inputs_, plan_, true);
    steps(body, begin, end);
    body.f.finish();
    std::vector<llvm::Value*> arguments;
    for (llvm::Argument& a : caller.f.function()->args()) arguments.push_back(&a);
    caller.f.check(caller.ir().CreateCall(function, arguments));
  }

  void steps(Body& body, size_t begin, size_t end) {
    Launcher launcher(body);
    launcher.reserve(plan_.steps.data() + begin, plan_.steps.data() + end);
    for (size_t i = begin; i < end; ++i) {
      const SpecialisedStep& step = plan_.steps[i];
      const auto index = static_cast<int32_t>(i);
      if (kernel::kernel_call_of(*step.node)) {
        launcher.launch(step, index);
      } else {
        call(body, step, index);
      }
      for (int32_t slot : step.releases) body.f.release(slot);
    }
  }

  void call(Body& body, const SpecialisedStep& step, int32_t index) {
    auto* type = llvm::FunctionType::get(host_.i32(), {host_.ptr(), host_.i32()}, false);
    llvm::Function* callee = host_.callee(CalleeKind::Call, step.node->callable().qualified_name(), type);
    llvm::Value* status =
        body.ir().CreateCall(callee, {body.f.frame(), host_.i32(index)}, std::string(step.node->name()));
    host_.comment(status, *step.node);
    body.f.check(status);
    body.forget_data();
  }

  void outputs(Body& body) {
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const ForwardOutput& o = plan_.outputs[i];
      const bool input = o.slot < plan_.inputs;
      llvm::Value* v = input ? body.input_tensor(o.slot) : body.f.load(host_.ptr(), body.slots(), o.slot * kWord);
      body.f.store(v, body.f.function()->getArg(3), static_cast<int64_t>(i) * kWord);
    }
    // Emptied after all are read: one value may go out twice.
    for (const ForwardOutput& o : plan_.outputs) {
      if (o.owned) body.f.store(llvm::ConstantPointerNull::get(body.ir().getPtrTy()), body.slots(), o.slot * kWord);
    }
  }

  HostModule& host_;
  const ShapeEnv& env_;
  const ForwardInputs& inputs_;
  const SpecialisedPlan& plan_;
};

}  // namespace

HostModule emit_specialised(const fx::Graph&, const ShapeEnv& env, const ForwardInputs& inputs,
                            const SpecialisedPlan& plan, bool readable) {
  HostModule host("forward", readable);
  SpecialisedEmitter(host, env, inputs, plan).run();
  return host;
}

}  // namespace fxjit::inline v0::codegen
