#include "codegen/forward/guards.h"

#include <bit>
#include <limits>

#include "runtime/abi.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

// Differences of several words, or'ed together: one branch for all of them.
class Differences {
 public:
  explicit Differences(Body& body) : body_(body) {}

  void equal(llvm::Value* actual, llvm::Value* expected) {
    if (actual == expected) return;
    llvm::Value* d = body_.ir().CreateXor(actual, expected);
    all_ = all_ ? body_.ir().CreateOr(all_, d) : d;
  }
  void equal(llvm::Value* actual, uint64_t expected) {
    equal(actual, body_.host().i64(static_cast<int64_t>(expected)));
  }
  void require_none() {
    if (all_) body_.f.require(body_.ir().CreateICmpEQ(all_, body_.host().i64(0)), FXJIT_GUARD);
    all_ = nullptr;
  }

 private:
  Body& body_;
  llvm::Value* all_ = nullptr;
};

void check_words(Body& body) {
  const std::vector<uint64_t>& words = body.inputs().words;
  if (words.empty()) return;
  llvm::Value* actual = body.f.load(body.host().ptr(), body.f.frame(), offsetof(fxjit_frame, words), "words");
  Differences d(body);
  for (size_t i = 0; i < words.size(); ++i) {
    d.equal(body.f.load(body.host().i64(), actual, static_cast<int64_t>(8 * i)), words[i]);
  }
  d.require_none();
}

int device_type(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::CPU:
      return 0;  // c10::DeviceType
    case DeviceKind::CUDA:
      return 1;
    case DeviceKind::Meta:
      return 14;
    case DeviceKind::Other:
      break;
  }
  FXJIT_UNREACHABLE("an input on a device that is not compiled for");
}

// What must hold before sizes may be read at all.
void check_identity(Body& body, int32_t index) {
  const ForwardInput& input = body.inputs().inputs[index];
  const TensorLayout& layout = body.layout();
  HostFunction& f = body.f;
  llvm::IRBuilder<>& ir = body.ir();
  llvm::Value* tensor = body.input_tensor(index);
  llvm::Type* i64 = body.host().i64();
  auto field = [&](llvm::Type* type, int32_t offset) { return ir.CreateZExt(f.load(type, tensor, offset), i64); };
  Differences d(body);
  d.equal(f.load(i64, tensor, layout.key_set, "key_set"), input.key_set);
  d.equal(field(ir.getInt16Ty(), layout.dtype), static_cast<uint64_t>(input.type->dtype));
  d.equal(field(ir.getInt8Ty(), layout.device_type), static_cast<uint64_t>(device_type(input.type->device)));
  d.equal(f.load(i64, tensor, layout.rank, "rank"), input.type->rank());
  d.require_none();
}

bool is_symbol_of(const ShapeEnv& env, Dim d, SymSource::Kind kind, int32_t input, int32_t dim) {
  const SymExpr& e = env.expr(d);
  if (e.kind != SymExpr::Symbol) return false;
  const SymSource& s = env.symbols()[e.value];
  return s.kind == kind && s.input == input && s.dim == dim;
}

// A size or stride that is not where its symbol is read must have the value that its expression says. The stride of a
// dimension of one element (or none) means nothing and is not looked at.
void check_geometry(Body& body, int32_t index) {
  const ShapeEnv& env = body.env();
  const TensorType& type = *body.inputs().inputs[index].type;
  Differences d(body);
  for (int32_t i = 0; i < static_cast<int32_t>(type.rank()); ++i) {
    const Dim size = type.sizes[i], stride = type.strides[i];
    if (!is_symbol_of(env, size, SymSource::Size, index, i)) d.equal(body.size(index, i), body.dim(size));
    if (env.is_const(size, 0) || env.is_const(size, 1)) continue;
    if (!is_symbol_of(env, stride, SymSource::Stride, index, i)) d.equal(body.stride(index, i), body.dim(stride));
  }
  d.require_none();
}

llvm::CmpInst::Predicate predicate(SymGuard::Rel rel) {
  switch (rel) {
    case SymGuard::Eq:
      return llvm::CmpInst::ICMP_EQ;
    case SymGuard::Ne:
      return llvm::CmpInst::ICMP_NE;
    case SymGuard::Lt:
      return llvm::CmpInst::ICMP_SLT;
    case SymGuard::Le:
      return llvm::CmpInst::ICMP_SLE;
  }
  FXJIT_UNREACHABLE("a relation");
}

void check_relations(Body& body) {
  for (const SymGuard& g : body.env().guards()) {
    llvm::Value* holds = body.ir().CreateICmp(predicate(g.rel), body.dim(g.lhs), body.dim(g.rhs));
    if (!llvm::isa<llvm::Constant>(holds)) body.f.require(holds, FXJIT_GUARD);
  }
}

// Division by zero raises in eager.
void check_divisor(Body& body, const NumberExpr& e) {
  if (e.op != NumberExpr::Div) return;
  llvm::Value* zero = llvm::ConstantFP::get(body.ir().getDoubleTy(), 0);
  body.f.require(body.ir().CreateFCmpUNE(body.real(e.b), zero), FXJIT_GUARD);
}

// Of the bits without the sign, those above the infinity's are NaNs.
void check_range(Body& body, int32_t index) {
  llvm::IRBuilder<>& ir = body.ir();
  llvm::Value* magnitude = ir.CreateAnd(body.scalar(index), body.host().i64(std::numeric_limits<int64_t>::max()));
  auto bits = [&](double v) { return body.host().i64(std::bit_cast<int64_t>(v)); };
  llvm::Value* small = ir.CreateICmpULE(magnitude, bits(0x1.fep127));
  llvm::Value* infinite = ir.CreateICmpEQ(magnitude, bits(std::numeric_limits<double>::infinity()));
  body.f.require(ir.CreateOr(small, infinite), FXJIT_GUARD);
}

void check_numbers(Body& body) {
  Differences d(body);
  for (size_t i = 0; i < body.inputs().inputs.size(); ++i) {
    const ForwardInput& input = body.inputs().inputs[i];
    if (input.kind == ForwardInput::Number && input.baked) d.equal(body.scalar(static_cast<int32_t>(i)), *input.baked);
  }
  d.require_none();
  for (size_t i = 0; i < body.inputs().inputs.size(); ++i) {
    const ForwardInput& input = body.inputs().inputs[i];
    if (input.kind == ForwardInput::Number && input.derived) check_divisor(body, *input.derived);
    if (input.kind == ForwardInput::Number && input.fits_bfloat16) check_range(body, static_cast<int32_t>(i));
  }
}

void check_gradients(Body& body) {
  auto* type = llvm::FunctionType::get(body.ir().getInt1Ty(), {body.host().ptr()}, false);
  for (size_t i = 0; i < body.inputs().inputs.size(); ++i) {
    const ForwardInput& input = body.inputs().inputs[i];
    if (input.kind != ForwardInput::Tensor || !input.requires_grad) continue;
    llvm::Function* ask = body.host().callee(CalleeKind::RequiresGrad, "requires_grad", type);
    ask->addRetAttr(llvm::Attribute::ZExt);
    llvm::Value* answer = body.ir().CreateCall(ask, {body.input_tensor(static_cast<int32_t>(i))});
    if (!*input.requires_grad) answer = body.ir().CreateNot(answer);
    body.f.require(answer, FXJIT_GUARD);
  }
}

void check_apart(Body& body) {
  for (const auto& [a, b] : body.inputs().apart) {
    llvm::Value* first = body.storage_data(body.input_tensor(a));
    llvm::Value* second = body.storage_data(body.input_tensor(b));
    body.f.require(body.ir().CreateICmpNE(first, second), FXJIT_GUARD);
  }
}

}  // namespace

void emit_guards(Body& body) {
  check_words(body);
  const auto count = static_cast<int32_t>(body.inputs().inputs.size());
  for (int32_t i = 0; i < count; ++i) {
    if (body.inputs().inputs[i].kind == ForwardInput::Tensor) check_identity(body, i);
  }
  check_numbers(body);
  for (int32_t i = 0; i < count; ++i) {
    if (body.inputs().inputs[i].kind == ForwardInput::Tensor) check_geometry(body, i);
  }
  check_relations(body);
  check_gradients(body);
  check_apart(body);
}

}  // namespace fxjit::inline v0::codegen
