#include "passes/decompose.h"

#include <string_view>

#include "support/errors.h"

namespace fxjit::inline v0::passes {
namespace {

struct Row {
  std::string_view schema;
  Decomposition apply;
};

constexpr Row kRows[] = {
    {"aten::softmax.int", decompose_softmax},         {"aten::_softmax", decompose_softmax},
    {"aten::log_softmax.int", decompose_log_softmax}, {"aten::_log_softmax", decompose_log_softmax},
    {"aten::layer_norm", decompose_layer_norm},       {"aten::native_layer_norm", decompose_native_layer_norm},
    {"aten::batch_norm", decompose_batch_norm},
};

Decomposition find(std::string_view schema) {
  for (const Row& row : kRows)
    if (row.schema == schema) return row.apply;
  return nullptr;
}

// In the example call: sizes that are equal by a guard may be different expressions. The strides of dimensions of one
// element are any.
bool same_type(const ShapeEnv& env, const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (size_t d = 0; d < a.rank(); ++d) {
    if (env.hint(a.sizes[d]) != env.hint(b.sizes[d])) return false;
    if (env.hint(a.sizes[d]) != 1 && env.hint(a.strides[d]) != env.hint(b.strides[d])) return false;
  }
  return true;
}

}  // namespace

bool decomposes(std::string_view schema) { return find(schema) != nullptr; }

void replace_call(fx::Node* n, fx::Node* made, const ShapeEnv& env) {
  if (const TensorTypePtr& type = n->tensor_type()) {
    FXJIT_CHECK(same_type(env, *made->tensor_type(), *type), "decomposing %", n->name(), " changed its type");
    auto exact = std::make_shared<TensorType>(*made->tensor_type());
    for (size_t d = 0; d < type->rank(); ++d)
      if (env.hint(type->sizes[d]) == 1) exact->strides[d] = type->strides[d];
    made->set_tensor_type(std::move(exact));
  }
  n->replace_all_uses_with(made);
}

const TensorType* row_operand(const fx::Node* x, ShapeEnv& env) {
  if (!x || !x->tensor_type()) return nullptr;
  const TensorType& t = *x->tensor_type();
  bool type = t.dtype == DType::Float32 || is_half(t.dtype);
  if (!type || t.device != DeviceKind::CPU || t.rank() == 0 || !is_contiguous(env, t)) return nullptr;
  for (Dim d : t.sizes)
    if (env.is_const(d, 0)) return nullptr;
  return &t;
}

Result<bool> decompose(PassContext& context) {
  bool changed = false;
  TypedBuilder build(*context.graph, context.env);
  for (fx::Node* n : context.graph->nodes()) {
    Decomposition apply = find(schema_of(*n));
    if (!apply) continue;
    auto scope = context.graph->inserting_before(n);
    build.set_origin(n);
    fx::Node* value = apply(*n, build);
    if (!value) continue;
    // Another layout than eager's (an operand with dimensions of one element in an order of their own): the call stays,
    // and what was made for it is dead.
    if (value != n && n->tensor_type() && !same_type(context.env, *value->tensor_type(), *n->tensor_type())) {
      context.notes.push_back(std::string(n->name()) + ": its parts would have another layout than its result");
      continue;
    }
    if (value != n) replace_call(n, value, context.env);
    context.graph->erase_node(n);
    changed = true;
  }
  return changed;
}

}  // namespace fxjit::inline v0::passes
