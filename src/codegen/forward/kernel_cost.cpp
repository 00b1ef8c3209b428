#include "codegen/forward/kernel_cost.h"

#include <array>
#include <string_view>

#include "ops/op_table.h"

namespace fxjit::inline v0::codegen {
namespace {

// Of a float, with 16 lanes at 3 GHz: two simple operations a cycle; a division 10 to 16 cycles a vector; a function
// of math.def 15 to 25 operations. Wider elements cost in proportion.
constexpr double kSimple = 0.012, kDivision = 0.25, kFunction = 0.3;
constexpr double kByte = 0.02;  // 50 GB/s: out of the second cache level

double cost_of_row(std::string_view emit) {
#define FXJIT_MATH(name, arity, ulp, low, high, exact) "b." #name "(",
  static constexpr std::array kFunctions = {
#include "fxjit/ops/math.def"
  };
  double ns = kSimple;
  for (const char* function : kFunctions) {
    for (size_t at = emit.find(function); at != emit.npos; at = emit.find(function, at + 1)) ns += kFunction;
  }
  for (const char* slow : {"b.div(", "b.sqrt("}) {
    for (size_t at = emit.find(slow); at != emit.npos; at = emit.find(slow, at + 1)) ns += kDivision;
  }
  return ns;
}

double width(DType t) { return static_cast<double>(size_of(compute_type(t))) / 4; }

double cost_of_expr(const kernel::Expr& e) {
  switch (e.kind) {
    case kernel::ExprKind::Op:
      return cost_of_row(ops::row(e.op).emit) * width(e.dtype);
    case kernel::ExprKind::Cast:
    case kernel::ExprKind::Reduce:
      return 2 * kSimple * width(e.dtype);
    case kernel::ExprKind::Load:
    case kernel::ExprKind::Scalar:
    case kernel::ExprKind::Const:
    case kernel::ExprKind::Extent:
      return 0;
  }
  return 0;
}

}  // namespace

double estimate_ns_per_element(const kernel::Kernel& k) {
  double ns = kSimple;
  for (const kernel::Buffer& b : k.buffers) {
    const bool broadcast = b.strides.empty() || b.strides.back() == kernel::StrideClass::Zero;
    const bool strided = !b.strides.empty() && b.strides.back() == kernel::StrideClass::Any;
    // A strided element brings a line, or a gather.
    if (!broadcast) ns += kByte * static_cast<double>(strided ? 32 : size_of(b.dtype));
  }
  for (const kernel::Expr& e : k.exprs) ns += cost_of_expr(e);
  return ns;
}

}  // namespace fxjit::inline v0::codegen
