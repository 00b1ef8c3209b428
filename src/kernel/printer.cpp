// kernel
//   axes parallel, reduction
//   b0 = in f16 [any, unit]
//   b1 = out f16 [any, unit]
//   s0 = f64
//   %0 = load b0 : f16
//   %1 = cast %0 : f32
//   %2 = scalar s0 : f32
//   %3 = mul %1, %2 : f32
//   %4 = reduce sum %3 : f32
//   %5 = const 0.5 : f32
//   store b1, %4
#include <bit>
#include <cmath>
#include <cstdio>

#include "kernel/kernel.h"
#include "kernel/text.h"

namespace fxjit::inline v0::kernel {
namespace {

// Decimal where that gives the same bits again; NaNs keep their payload.
std::string print_const(const Expr& e) {
  char text[40];
  if (!is_floating(e.dtype)) {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(e.bits));
    return text;
  }
  const double v = std::bit_cast<double>(e.bits);
  if (v != v) {
    std::snprintf(text, sizeof text, "nan(0x%llx)", static_cast<unsigned long long>(e.bits));
    return text;
  }
  for (int digits : {6, 9, 17}) {
    std::snprintf(text, sizeof text, "%.*g", digits, v);
    if (std::bit_cast<uint64_t>(std::strtod(text, nullptr)) == e.bits) break;
  }
  return text;
}

std::string operands(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Load:
      return "load b" + std::to_string(e.index);
    case ExprKind::Scalar:
      return "scalar s" + std::to_string(e.index);
    case ExprKind::Extent:
      return "extent a" + std::to_string(e.index);
    case ExprKind::Const:
      return "const " + print_const(e);
    case ExprKind::Cast:
      return "cast %" + std::to_string(e.args[0]);
    case ExprKind::Reduce:
      return "reduce " + std::string(kReduceNames[static_cast<int>(e.reduce)]) + " %" + std::to_string(e.args[0]);
    case ExprKind::Op:
      break;
  }
  std::string out(ops::row(e.op).name);
  for (int i = 0; i < arg_count(e); ++i) {
    out += i == 0 ? " %" : ", %";
    out += std::to_string(e.args[i]);
  }
  return out;
}

std::string print_buffer(const Buffer& b) {
  std::string out = b.output ? "out " : "in ";
  out += to_text(b.dtype);
  out += " [";
  for (size_t i = 0; i < b.strides.size(); ++i) {
    if (i > 0) out += ", ";
    out += kStrideNames[static_cast<int>(b.strides[i])];
  }
  return out + "]";
}

}  // namespace

std::string print_expr(const Kernel& k, int id) {
  const Expr& e = k.exprs[static_cast<size_t>(id)];
  std::string out = "%" + std::to_string(id);
  out += " = ";
  out += operands(e);
  out += " : ";
  return out + to_text(e.dtype);
}

std::string print(const Kernel& k) {
  std::string out = "kernel\n  axes";
  for (size_t i = 0; i < k.axes.size(); ++i) {
    out += i == 0 ? " " : ", ";
    out += k.axes[i].reduction ? "reduction" : "parallel";
  }
  out += '\n';
  auto line = [&](char letter, size_t i, const std::string& rest) {
    out += "  ";
    out += letter;
    out += std::to_string(i);
    out += " = ";
    out += rest;
    out += '\n';
  };
  for (size_t i = 0; i < k.buffers.size(); ++i) line('b', i, print_buffer(k.buffers[i]));
  for (size_t i = 0; i < k.scalars.size(); ++i) line('s', i, to_text(k.scalars[i]));
  for (size_t i = 0; i < k.exprs.size(); ++i) {
    out += "  ";
    out += print_expr(k, static_cast<int>(i));
    out += '\n';
  }
  for (const Store& s : k.stores) {
    out += "  store b" + std::to_string(s.buffer);
    out += ", %" + std::to_string(s.expr);
    out += '\n';
  }
  return out;
}

}  // namespace fxjit::inline v0::kernel
