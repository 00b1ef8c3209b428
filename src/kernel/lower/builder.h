// Makes the expressions of one kernel. Whatever cannot be made is -1, and everything made of -1 is -1: the first reason
// is kept, so that rules read straight on.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fxjit/tensor_type.h"
#include "kernel/lower/index.h"
#include "kernel/lower/lower.h"
#include "ops/promote.h"
#include "ops/value.h"

namespace fxjit::inline v0::kernel {

// An argument that takes part in the arithmetic: a tensor or a number.
struct Operand {
  fx::Node* node = nullptr;    // null: a number; without a tensor type: a number of the host
  DType dtype = DType::Int64;  // of the tensor, or Float64, Int64, Bool
  ops::Value number;
  bool is_tensor() const { return node != nullptr && node->tensor_type() != nullptr; }
  bool is_number() const { return !is_tensor(); }
  bool is_literal() const { return node == nullptr; }
  double as_double() const { return is_floating(dtype) ? number.f() : static_cast<double>(number.i()); }
};

// A node being lowered at one index.
struct Call {
  fx::Node* node;
  std::string_view schema;
  const TensorType& type;
  const Index& index;
};

class Builder {
 public:
  Builder(ShapeEnv& env, std::span<fx::Node* const> nodes, Space space, const LowerOptions& options);

  // The value of a node's tensor at `index`; computed if the node is of the group, else loaded.
  int value(fx::Node* node, const Index& index);
  void store(fx::Node* node, const Index& index);

  int fail(const std::string& reason);
  const std::optional<std::string>& failure() const { return failure_; }

  // ---- arguments ----
  // The argument at position `i`, or called `name`; None where it is missing.
  fx::Argument argument(const Call& c, size_t i, std::string_view name = {}) const;
  Operand operand(const fx::Argument& a);
  ops::OperandType operand_type(const Operand& o) const;
  // The operand at the call's index (broadcast to the call's sizes), as type `t`.
  int element(const Call& c, const Operand& o, DType t);
  // A number given as a Scalar of the schema: ATen refuses one that type `t` cannot hold.
  int parameter(const Call& c, const Operand& o, DType t);

  // ---- expressions ----
  // A list, so that operands are made in their order with every compiler.
  int op(ops::OpId id, std::initializer_list<int> args);
  int cast(int id, DType to);
  int constant(DType t, double v);
  int number(const Operand& o, DType t);
  int reduce(ReduceOp op, int x);
  int extent(DType t);  // of the reduction axis
  DType type(int id) const { return kernel_.exprs[static_cast<size_t>(id)].dtype; }

  ShapeEnv& env() { return env_; }
  const Space& space() const { return space_; }
  const LowerOptions& options() const { return options_; }

  // ---- what was made; strides are those of the axes of `space` ----
  Kernel& kernel() { return kernel_; }
  std::vector<BufferSource>& buffers() { return buffers_; }
  std::vector<ScalarSource>& scalars() { return scalars_; }

 private:
  int append(const Expr& e);
  int load(fx::Node* node, const Index& index);
  int add_buffer(fx::Node* node, const Index& index, bool output);
  int add_scalar(DType kind, ScalarSource source, DType t);
  std::vector<int32_t> key(const fx::Node* node, const Index& index) const;

  ShapeEnv& env_;
  Space space_;
  const LowerOptions& options_;
  std::unordered_set<const fx::Node*> group_;
  std::map<std::vector<int32_t>, int> known_;          // node and index → expression
  std::map<std::vector<int32_t>, int> known_buffers_;  // node, offset and strides → input buffer
  std::optional<std::string> failure_;
  Kernel kernel_;
  std::vector<BufferSource> buffers_;
  std::vector<ScalarSource> scalars_;
};

// One function per class of the registry; the expression of the call's result before the check of its type.
int lower_elementwise(Builder& b, const Call& c, const ops::OpRow& row);
int lower_special(Builder& b, const Call& c, uint16_t rule);
int lower_reduce(Builder& b, const Call& c, uint16_t id);
int lower_view(Builder& b, const Call& c, uint16_t rule);

}  // namespace fxjit::inline v0::kernel
