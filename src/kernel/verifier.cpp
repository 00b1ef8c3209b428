#include <string>

#include "kernel/kernel.h"
#include "kernel/rows.h"
#include "kernel/text.h"
#include "ops/value.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& k) : k_(k) {}

  void run() {
    place_ = "axes";
    rule(!k_.axes.empty(), "a kernel has at least one axis");
    for (size_t i = 0; i + 1 < k_.axes.size(); ++i)
      rule(!k_.axes[i].reduction, "only the last axis may be a reduction");
    for (size_t i = 0; i < k_.buffers.size(); ++i) check_buffer(i);
    for (size_t i = 0; i < k_.scalars.size(); ++i) {
      place_ = "s" + std::to_string(i);
      rule(k_.scalars[i] == DType::Float64 || k_.scalars[i] == DType::Int64, "a scalar argument is f64 or i64");
    }
    for (size_t i = 0; i < k_.exprs.size(); ++i) check_expr(static_cast<int>(i));
    check_stores();
  }

 private:
  void rule(bool holds, const std::string& what) const {
    if (!holds) throw InternalError("kernel, " + place_ + ": " + what);
  }

  static bool known(DType t) { return kind_of(t) != 'c' && kind_of(t) != '?'; }
  DType type(int32_t id) const { return k_.exprs[static_cast<size_t>(id)].dtype; }

  void check_buffer(size_t i) {
    const Buffer& b = k_.buffers[i];
    place_ = "b" + std::to_string(i);
    rule(known(b.dtype), "complex elements have no kernels");
    rule(b.strides.size() == k_.axes.size(), "a buffer has one stride class per axis");
    if (!b.output) return;
    for (size_t a = 0; a < b.strides.size(); ++a) {
      rule(b.strides[a] != StrideClass::Zero || k_.axes[a].reduction, "an output moves along every parallel axis");
    }
  }

  void check_expr(int id) {
    place_ = "expression out of range";
    const Expr& e = k_.exprs[static_cast<size_t>(id)];
    place_ = "line " + std::string("%") + std::to_string(id);
    const int count = arg_count(e);
    for (int a = 0; a < 3; ++a) {
      if (a < count) {
        rule(e.args[a] >= 0 && e.args[a] < id, "an operand is an earlier expression");
      } else {
        rule(e.args[a] == -1, "there are no more operands than the operator takes");
      }
    }
    place_ = print_expr(k_, id);
    rule(known(e.dtype), "complex elements have no kernels");
    rule(e.kind == ExprKind::Const || e.bits == 0, "only constants have bits");
    check_kind(e);
  }

  void check_kind(const Expr& e) {
    const bool has_index = e.kind == ExprKind::Load || e.kind == ExprKind::Scalar || e.kind == ExprKind::Extent;
    rule(e.index >= 0 || !has_index, "the index is that of a buffer, a scalar or an axis");
    rule(has_index || e.index == -1, "only loads, scalars and extents have an index");
    const size_t index = static_cast<size_t>(e.index);
    switch (e.kind) {
      case ExprKind::Load:
        rule(index < k_.buffers.size(), "there is no such buffer");
        rule(!k_.buffers[index].output, "an output is not read");
        rule(k_.buffers[index].dtype == e.dtype, "a load has its buffer's element type");
        return;
      case ExprKind::Scalar:
        rule(index < k_.scalars.size(), "there is no such scalar");
        return;
      case ExprKind::Extent:
        rule(index < k_.axes.size(), "there is no such axis");
        rule(e.dtype == DType::Float32 || e.dtype == DType::Float64 || e.dtype == DType::Int64,
             "an extent is f32, f64 or i64");
        return;
      case ExprKind::Const: {
        const ops::Value v = {e.bits};
        const bool nan = is_floating(e.dtype) && v.f() != v.f();
        rule(nan || ops::round_to(e.dtype, v) == v, "a constant is a value of its type");
        return;
      }
      case ExprKind::Cast:
        rule(type(e.args[0]) != e.dtype, "a cast changes the type");
        return;
      case ExprKind::Op:
        return check_op(e);
      case ExprKind::Reduce:
        return check_reduce(e);
    }
    rule(false, "there is no such kind of expression");
  }

  void check_op(const Expr& e) {
    const ops::OpRow& row = ops::row(e.op);
    const int first = row.promote == ops::Promote::Where ? 1 : 0;
    const DType t = type(e.args[first]);
    if (first == 1) rule(type(e.args[0]) == DType::Bool, "the condition is bool");
    for (int a = first; a < row.arity; ++a) rule(type(e.args[a]) == t, "operands are of one type");
    rule(ops::compiles(e.op, t), "the operator has no code for this type");
    rule(e.dtype == (ops::returns_bool(row.promote) ? DType::Bool : t), "the result has the wrong type");
  }

  void check_reduce(const Expr& e) {
    rule(k_.has_reduction(), "a reduction needs a reduction axis");
    rule(type(e.args[0]) == e.dtype, "a reduction has its operand's type");
    switch (e.reduce) {
      case ReduceOp::Sum:
      case ReduceOp::Prod:
      case ReduceOp::Max:
      case ReduceOp::Min:
        rule(e.dtype != DType::Bool && !is_half(e.dtype), "half types and bool are reduced in a wider type");
        return;
      case ReduceOp::Any:
      case ReduceOp::All:
        rule(e.dtype == DType::Bool, "any and all reduce bool");
        return;
    }
    rule(false, "there is no such reduction");
  }

  void check_stores() {
    place_ = "stores";
    rule(!k_.stores.empty(), "a kernel stores something");
    std::vector<int> count(k_.buffers.size(), 0);
    const std::vector<bool> row_values = row_values_of(k_);
    for (const Store& s : k_.stores) {
      place_ = support::concat("store b", s.buffer, ", %", s.expr);
      rule(s.buffer >= 0 && static_cast<size_t>(s.buffer) < k_.buffers.size(), "there is no such buffer");
      rule(s.expr >= 0 && static_cast<size_t>(s.expr) < k_.exprs.size(), "there is no such expression");
      const Buffer& b = k_.buffers[static_cast<size_t>(s.buffer)];
      rule(b.output, "an input is not written");
      rule(type(s.expr) == b.dtype, "a store has its buffer's element type");
      const bool per_row = k_.has_reduction() && b.strides.back() == StrideClass::Zero;
      rule(!per_row || row_values[static_cast<size_t>(s.expr)], "a result of the row is the same along the row");
      ++count[static_cast<size_t>(s.buffer)];
    }
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      place_ = "b" + std::to_string(i);
      rule(count[i] == (k_.buffers[i].output ? 1 : 0), "every output is stored once");
    }
  }

  const Kernel& k_;
  std::string place_;
};

}  // namespace

void verify(const Kernel& k) { Verifier(k).run(); }

}  // namespace fxjit::inline v0::kernel
