#include "codegen/forward/launch.h"

#include <algorithm>
#include <bit>

#include "codegen/forward/kernel_cost.h"
#include "kernel/kernel_call.h"
#include "runtime/abi.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

bool is_output(const kernel::KernelCall& call, const kernel::BufferBinding& b) {
  return call.kernel.buffers[&b - call.buffers.data()].output;
}

}  // namespace

void Launcher::reserve(const SpecialisedStep* begin, const SpecialisedStep* end) {
  size_t buffers = 0, axes = 0, strides = 0, scalars = 0, rank = 0;
  for (const SpecialisedStep* s = begin; s != end; ++s) {
    const kernel::KernelCall* call = kernel::kernel_call_of(*s->node);
    if (!call) continue;
    buffers = std::max(buffers, call->buffers.size());
    axes = std::max(axes, call->extents.size());
    strides = std::max(strides, call->buffers.size() * call->extents.size());
    scalars = std::max(scalars, call->scalars.size());
    for (const TensorTypePtr& t : call->results) rank = std::max(rank, t->rank());
  }
  if (buffers == 0) return;
  auto words = [&](size_t count, const char* name) {
    return body_.stack(body_.host().i64(), static_cast<int64_t>(std::max<size_t>(count, 1)), name);
  };
  out_ = words(1, "address");
  sizes_ = words(2 * rank, "sizes");
  scalars_ = words(scalars, "launch.scalars");
  strides_ = words(strides, "launch.strides");
  extents_ = words(axes, "launch.extents");
  pointers_ = words(buffers, "launch.pointers");
  launch_ = words(sizeof(fxjit_launch) / kWord, "launch");
  body_.f.store(pointers_, launch_, offsetof(fxjit_launch, pointers));
  body_.f.store(extents_, launch_, offsetof(fxjit_launch, extents));
  body_.f.store(strides_, launch_, offsetof(fxjit_launch, strides));
  body_.f.store(scalars_, launch_, offsetof(fxjit_launch, scalars));
}

void Launcher::launch(const SpecialisedStep& step, int32_t index) {
  const kernel::KernelCall& call = *kernel::kernel_call_of(*step.node);
  const auto choice = body_.inputs().kernels.find(step.node);
  FXJIT_CHECK(choice != body_.inputs().kernels.end(), "no schedule for ", step.node->format_node());
  const Schedule& schedule = choice->second.schedule;
  allocate(step);
  const std::vector<llvm::Value*> addresses = pointers(step, call);
  fill(call, addresses);
  const Shape s = shape(call, schedule);
  body_.f.store(s.blocks, launch_, offsetof(fxjit_launch, blocks));
  const bool may_fail = call.kernel.has_reduction();  // only rows use scratch
  if (may_fail) body_.f.store(body_.host().i32(FXJIT_OK), launch_, offsetof(fxjit_launch, status));
  llvm::Value* kernel = function(step, index, addresses);
  llvm::Value* least = grain(call, schedule, s);
  const auto* units = llvm::dyn_cast<llvm::ConstantInt>(s.units);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(least);
  llvm::CallInst* run = nullptr;
  if (units && known && units->getSExtValue() <= known->getSExtValue()) {
    if (units->getSExtValue() > 0) {
      run = body_.ir().CreateCall(kernel_type(), kernel, {body_.host().i64(0), s.units, launch_});
    }
  } else {
    auto* ptr = body_.host().ptr();
    auto* i64 = body_.host().i64();
    auto* type = llvm::FunctionType::get(body_.ir().getVoidTy(), {ptr, ptr, ptr, i64, i64}, false);
    llvm::Function* launcher = body_.host().callee(CalleeKind::Runtime, "fxjit_launch_kernel", type);
    run = body_.ir().CreateCall(launcher, {body_.f.frame(), kernel, launch_, s.units, least});
  }
  if (run) body_.host().comment(run, *step.node);
  if (run && may_fail) body_.f.check(body_.f.load(body_.host().i32(), launch_, offsetof(fxjit_launch, status)));
  bump_versions(step, call);
}

void Launcher::allocate(const SpecialisedStep& step) {
  llvm::Type* ptr = body_.host().ptr();
  llvm::Type* i32 = body_.host().i32();
  auto* type = llvm::FunctionType::get(i32, {ptr, i32, i32, i32, ptr, ptr, ptr}, false);
  for (int32_t value : step.results) {
    const ForwardValue& v = body_.plan().values[value];
    if (v.where != ForwardValue::Slot) continue;
    const auto rank = static_cast<int32_t>(v.type->rank());
    for (int32_t i = 0; i < rank; ++i) {
      body_.f.store(body_.dim(v.type->sizes[i]), sizes_, i * kWord);
      body_.f.store(body_.dim(v.type->strides[i]), sizes_, (rank + i) * kWord);
    }
    auto number = [&](int32_t n) { return body_.host().i32(n); };
    llvm::Value* status =
        body_.ir().CreateCall(type, body_.table_function(offsetof(fxjit_table, empty)),
                              {body_.f.frame(), number(v.index), number(static_cast<int32_t>(v.type->dtype)),
                               number(rank), sizes_, body_.f.at(sizes_, rank * kWord), out_},
                              "empty");
    body_.f.check(status);
    body_.set_data(value, body_.f.load(ptr, out_, 0, std::string(step.node->name())));
  }
}

int32_t Launcher::operand_value(const SpecialisedStep& step, const kernel::BufferBinding& b) const {
  return body_.plan().value_by_id[step.node->arg(b.operand).as_node()->id()];
}

std::vector<llvm::Value*> Launcher::pointers(const SpecialisedStep& step, const kernel::KernelCall& call) {
  // Written operands first: asking for them may move what others read.
  for (const kernel::BufferBinding& b : call.buffers) {
    if (b.operand >= 0 && is_output(call, b)) body_.writable_data(operand_value(step, b));
  }
  std::vector<llvm::Value*> addresses;
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const kernel::BufferBinding& b = call.buffers[i];
    llvm::Value* p = body_.data(b.operand >= 0 ? operand_value(step, b) : step.results[b.result]);
    const auto bytes = static_cast<int64_t>(size_of(call.kernel.buffers[i].dtype));
    addresses.push_back(body_.f.advance(p, body_.f.mul(body_.dim(b.offset), body_.host().i64(bytes))));
  }
  return addresses;
}

void Launcher::fill(const kernel::KernelCall& call, const std::vector<llvm::Value*>& addresses) {
  const auto axes = static_cast<int64_t>(call.extents.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    body_.f.store(addresses[i], pointers_, static_cast<int64_t>(i) * kWord);
    for (int64_t a = 0; a < axes; ++a) {
      if (call.kernel.buffers[i].strides[a] != kernel::StrideClass::Any) continue;
      const int64_t place = (static_cast<int64_t>(i) * axes + a) * kWord;
      body_.f.store(body_.dim(call.buffers[i].strides[a]), strides_, place);
    }
  }
  for (int64_t a = 0; a < axes; ++a) body_.f.store(body_.dim(call.extents[a]), extents_, a * kWord);
  for (size_t i = 0; i < call.scalars.size(); ++i) {
    body_.f.store(scalar_bits(call, i), scalars_, static_cast<int64_t>(i) * kWord);
  }
}

llvm::Value* Launcher::scalar_bits(const kernel::KernelCall& call, size_t i) {
  const kernel::ScalarBinding& s = call.scalars[i];
  switch (s.kind) {
    case kernel::ScalarBinding::Constant:
      return body_.host().i64(static_cast<int64_t>(s.bits));
    case kernel::ScalarBinding::Input:
      return body_.scalar(s.index);
    case kernel::ScalarBinding::Size: {
      llvm::Value* n = body_.dim(s.size);
      if (!is_floating(call.kernel.scalars[i])) return n;
      llvm::Value* real = body_.ir().CreateSIToFP(n, body_.ir().getDoubleTy());
      return body_.ir().CreateBitCast(real, body_.host().i64());
    }
  }
  FXJIT_UNREACHABLE("a scalar's source");
}

// The same as unit_count and blocks_per_outer, of values known at the call.
Launcher::Shape Launcher::shape(const kernel::KernelCall& call, const Schedule& schedule) {
  llvm::IRBuilder<>& ir = body_.ir();
  HostModule& host = body_.host();
  llvm::Value* one = host.i64(1);
  if (call.extents.empty()) return {one, one, one};
  const std::vector<Dim> outer(call.extents.begin(), call.extents.end() - 1);
  Shape s{body_.product(outer), one, body_.dim(call.extents.back())};
  if (call.kernel.has_reduction()) return s;
  llvm::Value* padded = ir.CreateAdd(s.inner, host.i64(schedule.block - 1));
  const auto block = static_cast<uint64_t>(schedule.block);
  s.blocks = std::has_single_bit(block) ? ir.CreateLShr(padded, host.i64(std::countr_zero(block)))
                                        : ir.CreateUDiv(padded, host.i64(schedule.block));
  s.units = body_.f.mul(s.units, s.blocks);
  return s;
}

llvm::Value* Launcher::grain(const kernel::KernelCall& call, const Schedule& schedule, const Shape& s) {
  llvm::IRBuilder<>& ir = body_.ir();
  HostModule& host = body_.host();
  const auto elements = static_cast<int64_t>(kGrainNanoseconds / estimate_ns_per_element(call.kernel));
  auto units_of = [&](llvm::Value* per_unit) {  // at least one
    llvm::Value* safe = ir.CreateSelect(ir.CreateICmpSGT(per_unit, host.i64(0)), per_unit, host.i64(1));
    llvm::Value* units = ir.CreateUDiv(host.i64(elements), safe);
    return ir.CreateSelect(ir.CreateICmpSGT(units, host.i64(0)), units, host.i64(1));
  };
  if (call.extents.empty()) return host.i64(1);
  if (call.kernel.has_reduction()) return units_of(s.inner);
  llvm::Value* block = host.i64(schedule.block);
  // With one axis a unit that is shorter than a block is the only one, and runs inline whatever the grain.
  if (call.extents.size() == 1) return units_of(block);
  return units_of(ir.CreateSelect(ir.CreateICmpSLT(s.inner, block), s.inner, block));
}

llvm::FunctionType* Launcher::kernel_type() {
  auto* i64 = body_.host().i64();
  return llvm::FunctionType::get(body_.ir().getVoidTy(), {i64, i64, body_.host().ptr()}, false);
}

llvm::Value* Launcher::function(const SpecialisedStep& step, int32_t index,
                                const std::vector<llvm::Value*>& addresses) {
  const kernel::KernelCall& call = *kernel::kernel_call_of(*step.node);
  const KernelChoice& choice = body_.inputs().kernels.at(step.node);
  const std::string label(call.qualified_name());
  llvm::Function* normal = body_.host().callee(CalleeKind::Kernel, label, kernel_type(), 2 * index);
  if (!choice.nontemporal) return normal;
  FXJIT_CHECK(choice.nontemporal->block == choice.schedule.block, "two variants of one kernel with different blocks");
  llvm::Value* bypass = may_bypass_cache(call, choice.nontemporal_bytes, addresses);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(bypass); known && known->isZero()) return normal;
  llvm::Function* other = body_.host().callee(CalleeKind::Kernel, label + ".nontemporal", kernel_type(), 2 * index + 1);
  return body_.ir().CreateSelect(bypass, other, normal);
}

llvm::Value* Launcher::may_bypass_cache(const kernel::KernelCall& call, int64_t bytes,
                                        const std::vector<llvm::Value*>& addresses) {
  llvm::IRBuilder<>& ir = body_.ir();
  HostModule& host = body_.host();
  llvm::Value* large = nullptr;
  llvm::Value* low = nullptr;  // low bits that must be clear
  auto require_aligned = [&](llvm::Value* v) { low = low ? ir.CreateOr(low, v) : v; };
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const kernel::Buffer& buffer = call.kernel.buffers[i];
    if (!buffer.output) continue;
    llvm::Value* size = host.i64(static_cast<int64_t>(size_of(buffer.dtype)));
    require_aligned(ir.CreatePtrToInt(addresses[i], host.i64()));
    llvm::Value* total = size;
    for (size_t a = 0; a < call.extents.size(); ++a) {
      if (buffer.strides[a] == kernel::StrideClass::Zero) continue;
      total = body_.f.mul(total, body_.dim(call.extents[a]));
      if (a + 1 == call.extents.size()) continue;
      require_aligned(body_.f.mul(body_.dim(call.buffers[i].strides[a]), size));
    }
    llvm::Value* enough = ir.CreateICmpSGE(total, host.i64(bytes));
    large = large ? ir.CreateAnd(large, enough) : enough;
  }
  if (!large) return ir.getFalse();
  llvm::Value* aligned = ir.CreateICmpEQ(ir.CreateAnd(low, host.i64(63)), host.i64(0));
  return ir.CreateAnd(large, aligned);
}

// As an in-place operator of the host would: autograd and caches of packed weights look at the counter. Inference
// tensors have none.
void Launcher::bump_versions(const SpecialisedStep& step, const kernel::KernelCall& call) {
  llvm::IRBuilder<>& ir = body_.ir();
  HostModule& host = body_.host();
  for (const kernel::BufferBinding& b : call.buffers) {
    if (b.operand < 0 || !is_output(call, b)) continue;
    const int32_t value = operand_value(step, b);
    if (body_.plan().values[value].where == ForwardValue::Scratch) continue;
    llvm::Value* counter = body_.f.load(host.ptr(), body_.tensor(value), body_.layout().version_counter, "version");
    auto* bump = llvm::BasicBlock::Create(host.context(), "", body_.f.function());
    auto* next = llvm::BasicBlock::Create(host.context(), "", body_.f.function());
    ir.CreateCondBr(ir.CreateIsNotNull(counter), bump, next);
    ir.SetInsertPoint(bump);
    ir.CreateAtomicRMW(llvm::AtomicRMWInst::Add, body_.f.at(counter, body_.layout().version), host.i32(1),
                       llvm::MaybeAlign(4), llvm::AtomicOrdering::Monotonic);
    ir.CreateBr(next);
    ir.SetInsertPoint(next);
  }
}

}  // namespace fxjit::inline v0::codegen
