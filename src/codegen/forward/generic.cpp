#include "codegen/forward/generic.h"

#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

constexpr size_t kChunk = 256;
class GenericEmitter {
 public:
  GenericEmitter(HostModule& host, const ForwardPlan& plan) : host_(host), plan_(plan) {}

  void run() {
    const size_t count = plan_.steps.size();
    llvm::Function* forward = define("forward", /*internal=*/false);
    host_.comment(forward, summary());
    HostFunction f(host_, forward);
    if (count <= kChunk) {
      steps(f, 0, count);
    } else {
      for (size_t begin = 0; begin < count; begin += kChunk) {
        llvm::Function* part = define("forward.part" + std::to_string(begin / kChunk), /*internal=*/true);
        HostFunction inner(host_, part);
        steps(inner, begin, std::min(begin + kChunk, count));
        inner.finish();
        f.check(f.ir().CreateCall(part, {forward->getArg(0), forward->getArg(1), forward->getArg(2)}));
      }
    }
    f.finish();
  }

 private:
  llvm::Function* define(const std::string& name, bool internal) {
    return host_.define(name, host_.i32(), {"frame", "in", "out"}, internal);
  }

  std::string summary() const {
    std::string names;
    for (const ForwardStep& s : plan_.steps) {
      if (s.node->op() != fx::Opcode::Placeholder) continue;
      names += names.empty() ? "" : ", ";
      names += s.node->name();
    }
    return support::concat("forward(", names, "): ", plan_.steps.size(), " nodes, ", plan_.slots, " slots");
  }

  void steps(HostFunction& f, size_t begin, size_t end) {
    llvm::Value* slots = f.slots();
    for (size_t i = begin; i < end; ++i) step(f, slots, static_cast<int32_t>(i));
  }

  void step(HostFunction& f, llvm::Value* slots, int32_t index) {
    const ForwardStep& s = plan_.steps[index];
    const llvm::StringRef name(s.node->name().data(), s.node->name().size());
    if (s.node->op() == fx::Opcode::Placeholder) {
      llvm::Value* value = f.load(host_.ptr(), f.function()->getArg(1), s.slot * kWord, name);
      f.store(value, slots, s.slot * kWord);
      return;
    }
    auto* type = llvm::FunctionType::get(host_.i32(), {host_.ptr(), host_.i32()}, false);
    llvm::Function* callee = host_.callee(CalleeKind::Call, callee_label(*s.node), type);
    llvm::Value* status = f.ir().CreateCall(callee, {f.frame(), host_.i32(index)}, name);
    host_.comment(status, *s.node);
    f.check(status);
    for (int32_t slot : plan_.releases_of(s)) f.release(slot);
    if (s.node->op() == fx::Opcode::Output) move_out(f, slots);
  }

  void move_out(HostFunction& f, llvm::Value* slots) {
    const int64_t place = plan_.output_slot * kWord;
    f.store(f.load(host_.ptr(), slots, place), f.function()->getArg(2), 0);
    f.store(llvm::ConstantPointerNull::get(f.ir().getPtrTy()), slots, place);
  }

  HostModule& host_;
  const ForwardPlan& plan_;
};

}  // namespace

HostModule emit_generic(const fx::Graph&, const ForwardPlan& plan, bool readable) {
  HostModule host("forward", readable);
  GenericEmitter(host, plan).run();
  return host;
}

}  // namespace fxjit::inline v0::codegen
