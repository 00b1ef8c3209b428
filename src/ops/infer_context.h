// What the type rules share.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "ops/infer.h"
#include "ops/promote.h"
#include "ops/registry.h"
#include "ops/shape.h"

namespace fxjit::inline v0::ops {

struct Inference {
  ShapeEnv& env;
  const fx::Node& node;
  std::string_view schema;
  DType default_float;

  fx::Argument argument(size_t i) const { return i < node.args().size() ? node.arg(i) : fx::Argument(); }
  // The type of a tensor operand; null where the argument is something else.
  const TensorType* tensor(size_t i) const;
};

using TypeResult = Result<TensorTypePtr>;

// A type like that of the first tensor among the arguments in device, with these sizes, strides and dtype.
TypeResult make_type(const Inference& c, Dims sizes, Dims strides, DType dtype);

// The arguments that take part in broadcasting, promotion and the order of dimensions: tensors and numbers.
struct Operands {
  std::vector<OperandType> types;
  std::vector<Layout> layouts;
};
Result<Operands> operands(const Inference& c, std::initializer_list<size_t> which);

// Sizes and strides of an elementwise result.
TypeResult iterate(const Inference& c, const Operands& operands, DType dtype);

// A list of integers without nodes among them.
Result<std::vector<int64_t>> integers(const fx::Argument& a);

TypeResult infer_elementwise(const Inference& c, const OpRow& row);
TypeResult infer_special(const Inference& c, SpecialRule rule);
TypeResult infer_reduce(const Inference& c, ReduceId id);
TypeResult infer_view(const Inference& c, ViewRule rule);
TypeResult infer_library(const Inference& c, LibraryId id);

}  // namespace fxjit::inline v0::ops
