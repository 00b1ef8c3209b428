#include "ops/infer.h"

#include "ops/infer_context.h"
#include "ops/number.h"
#include "support/errors.h"

namespace fxjit::inline v0::ops {

using support::concat;

const TensorType* Inference::tensor(size_t i) const {
  const fx::Node* n = i < node.args().size() ? node.arg(i).node_or_null() : nullptr;
  return n != nullptr ? n->tensor_type().get() : nullptr;
}

TypeResult make_type(const Inference& c, Dims sizes, Dims strides, DType dtype) {
  auto out = std::make_shared<TensorType>();
  out->dtype = dtype;
  out->sizes = std::move(sizes);
  out->strides = std::move(strides);
  // A 0-dim tensor of the CPU goes with tensors of any device.
  const TensorType* first = nullptr;
  for (size_t i = 0; i < c.node.args().size(); ++i) {
    const TensorType* t = c.tensor(i);
    if (t == nullptr) continue;
    out->requires_grad = out->requires_grad || t->requires_grad;
    if (first == nullptr || (first->rank() == 0 && t->rank() > 0)) first = t;
  }
  if (first != nullptr) out->device = first->device;
  out->requires_grad = out->requires_grad && (is_floating(dtype) || kind_of(dtype) == 'c');
  return TensorTypePtr(std::move(out));
}

Result<Operands> operands(const Inference& c, std::initializer_list<size_t> which) {
  using Kind = fx::Argument::Kind;
  Operands out;
  for (size_t i : which) {
    const fx::Argument a = c.argument(i);
    if (const TensorType* t = c.tensor(i)) {
      out.types.push_back(operand_type(*t));
      out.layouts.push_back(layout_of(*t));
      continue;
    }
    DType dtype = DType::Bool;
    const std::optional<HostNumber> number = a.is_node() ? host_number(*a.as_node()) : std::nullopt;
    if (number) {
      dtype = number->dtype;
    } else if (a.is(Kind::Float)) {
      dtype = DType::Float64;
    } else if (a.is(Kind::Int)) {
      dtype = DType::Int64;
    } else if (!a.is(Kind::Bool)) {
      return Failure{concat(c.schema, ": operand ", i, " is ", a.type_name())};
    }
    out.types.push_back({OperandType::Wrapped, dtype});
    out.layouts.push_back({});
  }
  return out;
}

TypeResult iterate(const Inference& c, const Operands& operands, DType dtype) {
  std::vector<const Dims*> shapes;
  for (const Layout& l : operands.layouts) shapes.push_back(&l.sizes);
  Result<Dims> sizes = broadcast(c.env, shapes);
  if (!sizes) return sizes.failure();
  Dims strides = iterator_strides(c.env, *sizes, operands.layouts);
  return make_type(c, std::move(*sizes), std::move(strides), dtype);
}

Result<std::vector<int64_t>> integers(const fx::Argument& a) {
  std::vector<int64_t> out;
  if (a.is_none()) return out;
  if (a.is_int()) return std::vector<int64_t>{a.as_int()};
  if (!a.is_aggregate()) return Failure{concat("expected integers, found ", a.type_name())};
  for (const fx::Argument& item : a.items()) {
    if (!item.is_int()) return Failure{concat("expected an integer, found ", item.type_name())};
    out.push_back(item.as_int());
  }
  return out;
}

TypeResult infer_type(ShapeEnv& env, const fx::Node& node, DType default_float) {
  if (node.op() != fx::Opcode::CallFunction) return Failure{"the node calls no operator"};
  const Inference c{env, node, node.callable().qualified_name(), default_float};
  const std::optional<SchemaEntry> entry = find_schema(c.schema);
  if (!entry) return Failure{concat(c.schema, " has no type rule")};
  switch (entry->kind) {
    case OpClass::Elementwise:
      return infer_elementwise(c, row(entry->op()));
    case OpClass::Special:
      return infer_special(c, entry->special());
    case OpClass::Reduce:
      return infer_reduce(c, entry->reduce());
    case OpClass::View:
      return infer_view(c, entry->view());
    case OpClass::Library:
      return infer_library(c, entry->library());
  }
  FXJIT_UNREACHABLE("a class of operators");
}

bool has_type_rule(std::string_view schema) { return find_schema(schema).has_value(); }

}  // namespace fxjit::inline v0::ops
