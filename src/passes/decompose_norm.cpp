#include "passes/decompose.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

bool is_float(DType t) { return t == DType::Float32 || is_half(t); }

// An optional weight or bias: absent, or floating on the CPU.
bool is_parameter(const Argument& a) {
  if (a.is_none()) return true;
  const Node* n = a.node_or_null();
  return n && n->tensor_type() && is_float(n->tensor_type()->dtype) && n->tensor_type()->device == DeviceKind::CPU;
}

struct Normalized {
  Node* y = nullptr;  // float32
  Node* mean = nullptr;
  Node* rstd = nullptr;
};

// (input, normalized_shape, weight, bias, eps): the last dims are those of normalized_shape.
Normalized normalize(const Node& n, TypedBuilder& build) {
  Node* input = n.arg(0).node_or_null();
  const TensorType* t = row_operand(input, build.env());
  size_t dims = n.arg(1).is_aggregate() ? n.arg(1).size() : 0;
  if (!t || dims == 0 || dims > t->rank() || !is_parameter(n.arg(2)) || !is_parameter(n.arg(3))) return {};
  Node* x = build.cast(input, DType::Float32);
  // The mean of what is left corrects the first mean, whose rounding 1/sqrt(eps) would magnify where a row hardly
  // varies: eager's running mean is exact on constant rows. It is one more sum in the pass that squares.
  Node* first = build.mean(x, dims);
  Node* rough = build.sub(x, first);
  Node* rest = build.mean(rough, dims);
  Node* mean = build.add(first, rest);
  Node* var = build.sub(build.mean(build.mul(rough, rough), dims), build.mul(rest, rest));
  Node* rstd = build.rsqrt(build.add(var, n.arg(4)));
  Node* y = build.mul(build.sub(x, mean), rstd);
  Node* w = n.arg(2).is_node() ? build.cast(n.arg(2).as_node(), DType::Float32) : nullptr;
  Node* b = n.arg(3).is_node() ? build.cast(n.arg(3).as_node(), DType::Float32) : nullptr;
  if (w && b) {
    y = build.call("aten::addcmul", {b, y, w, 1});  // one rounding for both
  } else if (w || b) {
    y = w ? build.mul(y, w) : build.add(y, b);
  }
  return {y, mean, rstd};
}

// Contiguous, or channels last: the layouts that eager's kernel keeps and elementwise operators keep too.
bool keeps_layout(ShapeEnv& env, const TensorType& t) {
  if (is_contiguous(env, t)) return true;
  if (t.rank() < 3) return false;
  TensorType last = t;  // the channels moved behind the others
  last.sizes.push_back(t.sizes[1]);
  last.strides.push_back(t.strides[1]);
  last.sizes.erase(last.sizes.begin() + 1);
  last.strides.erase(last.strides.begin() + 1);
  return is_contiguous(env, last) && (t.rank() == 4 || t.rank() == 5);
}

}  // namespace

Node* decompose_layer_norm(const Node& n, TypedBuilder& build) {
  Normalized r = normalize(n, build);
  return r.y ? build.cast(r.y, n.arg(0).as_node()->tensor_type()->dtype) : nullptr;
}

// Its mean and rstd are float32 only beside a float32 operand: eager keeps them in the parameters' type otherwise.
Node* decompose_native_layer_norm(const Node& n, TypedBuilder& build) {
  Node* input = n.arg(0).node_or_null();
  if (!input || !input->tensor_type() || input->tensor_type()->dtype != DType::Float32) return nullptr;
  for (Node* user : n.users())
    if (schema_of(*user) != "_operator.getitem" || !user->arg(1).is_int()) return nullptr;
  Normalized r = normalize(n, build);
  if (!r.y) return nullptr;
  for (Node* user : n.users_vector()) {
    int64_t i = user->arg(1).as_int();
    replace_call(user, i == 0 ? r.y : i == 1 ? r.mean : r.rstd, build.env());
    build.graph().erase_node(user);
  }
  return const_cast<Node*>(&n);
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled), as eager's CPU kernel:
// a scale and a shift per channel, then one multiplication and one addition an element.
Node* decompose_batch_norm(const Node& n, TypedBuilder& build) {
  Node* input = n.arg(0).node_or_null();
  Node* mean = n.arg(3).node_or_null();
  Node* var = n.arg(4).node_or_null();
  if (!input || !input->tensor_type() || !mean || !var || !n.arg(5).is_bool() || n.arg(5).as_bool()) return nullptr;
  const TensorType& t = *input->tensor_type();
  if (!is_float(t.dtype) || t.device != DeviceKind::CPU || t.rank() < 2 || !keeps_layout(build.env(), t))
    return nullptr;
  for (size_t i = 1; i <= 4; ++i)
    if (!is_parameter(n.arg(i))) return nullptr;
  auto f32 = [&](Node* p) { return build.cast(p, DType::Float32); };
  Node* scale = build.rsqrt(build.add(f32(var), n.arg(7)));
  if (Node* w = n.arg(1).node_or_null()) scale = build.mul(f32(w), scale);
  Node* shift = build.mul(f32(mean), scale);
  shift = n.arg(2).is_node() ? build.sub(f32(n.arg(2).as_node()), shift) : build.call("aten::neg", {shift});
  for (size_t i = 2; i < t.rank(); ++i) {
    scale = build.unsqueeze(scale, -1);
    shift = build.unsqueeze(shift, -1);
  }
  return build.cast(build.add(build.mul(f32(input), scale), shift), t.dtype);
}

}  // namespace fxjit::inline v0::passes
