// The reference: line by line along the last axis, expression by expression, through the REF column.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/kernel.h"
#include "kernel/text.h"
#include "ops/value.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {
namespace {

using ops::Value;
using Line = std::vector<Value>;
const Line kNothing;

// Floating sums and products in long double: what they are compared with is not to add an error of its own.
Value reduce_floating(const Expr& e, const Line& line) {
  const long double inf = std::numeric_limits<long double>::infinity();
  const bool sum = e.reduce == ReduceOp::Sum, prod = e.reduce == ReduceOp::Prod, max = e.reduce == ReduceOp::Max;
  long double total = sum ? 0.0L : prod ? 1.0L : max ? -inf : inf;
  for (const Value& v : line) {
    const long double x = v.f();
    if (sum) {
      total += x;
    } else if (prod) {
      total *= x;
    } else if (total == total && (x != x || (max ? x > total : x < total))) {
      total = x;
    }
  }
  const double rounded =
      e.dtype == DType::Float32 ? static_cast<double>(static_cast<float>(total)) : static_cast<double>(total);
  return ops::round_to(e.dtype, Value::of(rounded));
}

int64_t integer_identity(const Expr& e) {
  const int bits = static_cast<int>(8 * size_of(e.dtype));
  const bool is_signed = kind_of(e.dtype) == 'i';
  const int64_t highest = is_signed ? static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) : (int64_t{1} << bits) - 1;
  switch (e.reduce) {
    case ReduceOp::Sum:
    case ReduceOp::Any:
      return 0;
    case ReduceOp::Prod:
    case ReduceOp::All:
      return 1;
    case ReduceOp::Max:
      return is_signed ? -highest - 1 : 0;
    case ReduceOp::Min:
      return highest;
  }
  return 0;
}

Value reduce_integer(const Expr& e, const Line& line) {
  int64_t total = integer_identity(e);
  for (const Value& v : line) {
    const uint64_t x = v.bits;
    switch (e.reduce) {
      case ReduceOp::Sum:
        total = static_cast<int64_t>(static_cast<uint64_t>(total) + x);
        break;
      case ReduceOp::Prod:
        total = static_cast<int64_t>(static_cast<uint64_t>(total) * x);
        break;
      case ReduceOp::Max:
        total = std::max(total, v.i());
        break;
      case ReduceOp::Min:
        total = std::min(total, v.i());
        break;
      case ReduceOp::Any:
        total |= v.i();
        break;
      case ReduceOp::All:
        total &= v.i();
        break;
    }
  }
  return ops::round_to(e.dtype, Value::of(total));
}

class Interpreter {
 public:
  Interpreter(const Kernel& k, void* const* pointers, const int64_t* extents, const int64_t* strides,
              const uint64_t* scalars)
      : k_(k), pointers_(pointers), extents_(extents), strides_(strides), scalars_(scalars), lines_(k.exprs.size()) {}

  void run() {
    const size_t outer = k_.axes.size() - 1;
    for (size_t a = 0; a < k_.axes.size(); ++a) {
      if (extents_[a] == 0 && !k_.axes[a].reduction) return;
    }
    std::vector<int64_t> at(outer, 0);
    for (;;) {
      run_line(at);
      size_t a = outer;
      while (a > 0 && ++at[a - 1] == extents_[a - 1]) at[--a] = 0;
      if (a == 0) return;
    }
  }

 private:
  int64_t stride(size_t buffer, size_t axis) const {
    switch (k_.buffers[buffer].strides[axis]) {
      case StrideClass::Zero:
        return 0;
      case StrideClass::Unit:
        return 1;
      case StrideClass::Any:
        return strides_[buffer * k_.axes.size() + axis];
    }
    return 0;
  }

  char* element(size_t buffer, const std::vector<int64_t>& at, int64_t i) const {
    int64_t offset = i * stride(buffer, k_.axes.size() - 1);
    for (size_t a = 0; a < at.size(); ++a) offset += at[a] * stride(buffer, a);
    return static_cast<char*>(pointers_[buffer]) + offset * static_cast<int64_t>(size_of(k_.buffers[buffer].dtype));
  }

  void run_line(const std::vector<int64_t>& at) {
    const int64_t n = extents_[k_.axes.size() - 1];
    const int64_t kept = std::max<int64_t>(n, 1);  // a row without elements has results all the same
    for (size_t id = 0; id < k_.exprs.size(); ++id) {
      const Expr& e = k_.exprs[id];
      Line& out = lines_[id];
      if (e.kind == ExprKind::Reduce) {
        const Line& arg = n == 0 ? kNothing : lines_[static_cast<size_t>(e.args[0])];
        out.assign(static_cast<size_t>(kept), is_floating(e.dtype) ? reduce_floating(e, arg) : reduce_integer(e, arg));
        continue;
      }
      out.resize(static_cast<size_t>(kept));
      const bool unreadable =
          n == 0 && e.kind == ExprKind::Load && stride(static_cast<size_t>(e.index), k_.axes.size() - 1) != 0;
      for (int64_t i = 0; i < kept; ++i) {
        out[static_cast<size_t>(i)] = unreadable ? Value{} : element_value(e, at, i);
      }
    }
    for (const Store& s : k_.stores) store_line(s, at, n);
  }

  void store_line(const Store& s, const std::vector<int64_t>& at, int64_t n) {
    const size_t b = static_cast<size_t>(s.buffer);
    const bool per_row = k_.has_reduction() && k_.buffers[b].strides.back() == StrideClass::Zero;
    for (int64_t i = 0; i < (per_row ? 1 : n); ++i) {
      ops::store(k_.buffers[b].dtype, element(b, at, i), lines_[static_cast<size_t>(s.expr)][static_cast<size_t>(i)]);
    }
  }

  Value element_value(const Expr& e, const std::vector<int64_t>& at, int64_t i) const {
    auto arg = [&](int a) {
      return e.args[a] < 0 ? Value{} : lines_[static_cast<size_t>(e.args[a])][static_cast<size_t>(i)];
    };
    auto arg_type = [&](int a) { return k_.exprs[static_cast<size_t>(e.args[a])].dtype; };
    const size_t index = static_cast<size_t>(e.index);
    switch (e.kind) {
      case ExprKind::Load:
        return ops::load(e.dtype, element(index, at, i));
      case ExprKind::Scalar:
        return ops::cast(k_.scalars[index], e.dtype, Value{scalars_[index]});
      case ExprKind::Const:
        return Value{e.bits};
      case ExprKind::Extent:
        return ops::cast(DType::Int64, e.dtype, Value::of(extents_[index]));
      case ExprKind::Cast:
        return ops::cast(arg_type(0), e.dtype, arg(0));
      case ExprKind::Op: {
        const int typed = ops::row(e.op).promote == ops::Promote::Where ? 1 : 0;
        return ops::apply(e.op, arg_type(typed), arg(0), arg(1), arg(2));
      }
      case ExprKind::Reduce:
        break;
    }
    FXJIT_UNREACHABLE("an expression of one element");
  }

  const Kernel& k_;
  void* const* pointers_;
  const int64_t* extents_;
  const int64_t* strides_;
  const uint64_t* scalars_;
  std::vector<Line> lines_;  // the values of each expression along the current line
};

}  // namespace

void interpret(const Kernel& k, void* const* pointers, const int64_t* extents, const int64_t* strides,
               const uint64_t* scalars) {
  Interpreter(k, pointers, extents, strides, scalars).run();
}

}  // namespace fxjit::inline v0::kernel
