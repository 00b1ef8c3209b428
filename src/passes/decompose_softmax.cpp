#include "passes/decompose.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

struct Operand {
  Node* x = nullptr;  // float32
  DType result = DType::Float32;
};

// softmax.int(self, dim, dtype?) converts first; _softmax(self, dim, half_to_float) has no such conversion on the CPU.
Operand operand_of(const Node& n, TypedBuilder& build) {
  Node* x = n.arg(0).node_or_null();
  const TensorType* t = row_operand(x, build.env());
  if (!t || !n.arg(1).is_int()) return {};
  int64_t dim = n.arg(1).as_int(), last = static_cast<int64_t>(t->rank()) - 1;
  if (dim != -1 && dim != last) return {};
  const Argument& option = n.arg(2);
  if (option.is_bool() && option.as_bool()) return {};
  DType result = t->dtype;
  if (option.is(Argument::Kind::DType)) {
    DType wanted = option.as_dtype();
    if (wanted != DType::Float32 && wanted != t->dtype) return {};
    result = wanted;
  }
  return {build.cast(x, DType::Float32), result};
}

}  // namespace

// A row of NaN or with an infinity comes out as eager's: x - m is NaN where both are the same infinity.
Node* decompose_softmax(const Node& n, TypedBuilder& build) {
  Operand in = operand_of(n, build);
  if (!in.x) return nullptr;
  Node* e = build.exp(build.sub(in.x, build.amax(in.x, 1)));
  // One division a row; the sum is at least 1, so the reciprocal is a normal number.
  Node* scale = build.reciprocal(build.sum(e, 1));
  return build.cast(build.mul(e, scale), in.result);
}

Node* decompose_log_softmax(const Node& n, TypedBuilder& build) {
  Operand in = operand_of(n, build);
  if (!in.x) return nullptr;
  Node* shifted = build.sub(in.x, build.amax(in.x, 1));
  Node* log_sum = build.log(build.sum(build.exp(shifted), 1));
  return build.cast(build.sub(shifted, log_sum), in.result);
}

}  // namespace fxjit::inline v0::passes
