// The words of the kernel text format, shared by printer and parser.
#pragma once

#include <string_view>

#include "kernel/kernel.h"

namespace fxjit::inline v0::kernel {

inline constexpr std::string_view kStrideNames[] = {"zero", "unit", "any"};
inline constexpr std::string_view kReduceNames[] = {"sum", "prod", "max", "min", "any", "all"};

// What stands before the operands, for the kinds whose word is fixed.
inline constexpr std::string_view kind_word(ExprKind kind) {
  switch (kind) {
    case ExprKind::Load:
      return "load";
    case ExprKind::Scalar:
      return "scalar";
    case ExprKind::Const:
      return "const";
    case ExprKind::Extent:
      return "extent";
    case ExprKind::Cast:
      return "cast";
    case ExprKind::Reduce:
      return "reduce";
    case ExprKind::Op:
      break;
  }
  return "";
}

// The number of entries of Expr::args that are in use.
inline int arg_count(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Load:
    case ExprKind::Scalar:
    case ExprKind::Const:
    case ExprKind::Extent:
      return 0;
    case ExprKind::Cast:
    case ExprKind::Reduce:
      return 1;
    case ExprKind::Op:
      return ops::row(e.op).arity;
  }
  return 0;
}

// One line of the text, without its newline: "%3 = add %1, %2 : f32".
std::string print_expr(const Kernel& k, int id);

}  // namespace fxjit::inline v0::kernel
