#include "codegen/schedule.h"

#include <algorithm>

namespace fxjit::inline v0::codegen {

using kernel::Expr;
using kernel::ExprKind;
using kernel::StrideClass;
using ops::OpId;

namespace {

struct OpCost {
  OpId op;
  int cost;
};

// About the number of vector instructions that a row of the table becomes, counted in AVX-512 code; 1 for the others.
// A division or root counts as what could be done in its time.
constexpr OpCost kCosts[] = {
    {OpId::exp, 17},       {OpId::exp2, 15},     {OpId::expm1, 22},    {OpId::log, 17},        {OpId::log2, 18},
    {OpId::log10, 19},     {OpId::log1p, 28},    {OpId::sigmoid, 20},  {OpId::tanh, 26},       {OpId::erf, 36},
    {OpId::sin, 26},       {OpId::cos, 24},      {OpId::pow, 110},     {OpId::silu, 20},       {OpId::gelu, 40},
    {OpId::gelu_tanh, 34}, {OpId::softplus, 50}, {OpId::hardswish, 8}, {OpId::hardsigmoid, 7}, {OpId::div, 4},
    {OpId::reciprocal, 4}, {OpId::div_trunc, 5}, {OpId::sqrt, 4},      {OpId::rsqrt, 8},       {OpId::leaky_relu, 3},
};

int cost_of(OpId op) {
  for (const OpCost& c : kCosts) {
    if (c.op == op) return c.cost;
  }
  return 1;
}

}  // namespace

int cost_of(const kernel::Kernel& k, const Expr& e) {
  const int rounding = e.dtype == DType::Float16 ? 2 : e.dtype == DType::BFloat16 ? 6 : 0;
  switch (e.kind) {
    case ExprKind::Load:
      return k.buffers[e.index].dtype == DType::Float32 ? 1 : 2;
    case ExprKind::Op:
      return cost_of(e.op) + rounding;
    case ExprKind::Cast:
      return 1 + rounding;
    case ExprKind::Scalar:
    case ExprKind::Const:
    case ExprKind::Extent:
    case ExprKind::Reduce:
      return 0;
  }
  return 0;
}

namespace {

bool has_strided_access(const kernel::Kernel& k) {
  return !k.axes.empty() && std::any_of(k.buffers.begin(), k.buffers.end(),
                                        [](const kernel::Buffer& b) { return b.strides.back() == StrideClass::Any; });
}

bool has_wide_values(const kernel::Kernel& k) {
  return std::any_of(k.exprs.begin(), k.exprs.end(), [](const Expr& e) {
    return size_of(e.dtype) == 8 && e.kind != ExprKind::Const && e.kind != ExprKind::Scalar;
  });
}

}  // namespace

ScheduleOptions schedule_options(std::string_view target) {
  ScheduleOptions options;
  options.lanes = target == "avx512" || target == "avx2" ? 16 : 1;
  options.registers = target == "avx2" ? 8 : 32;  // 16 registers of half a vector
  return options;
}

Schedule choose_schedule(const kernel::Kernel& k, const ScheduleOptions& options) {
  Schedule s;
  s.fast_math = options.fast_math;
  s.profile = k.has_reduction() ? Profile::Carrying : Profile::Straight;
  if (options.lanes == 1) {
    s.vectors = 1;
    s.block = 1024;
    return s;
  }
  int cost = 0;
  for (const Expr& e : k.exprs) cost += cost_of(k, e);
  // 4 vectors cover the latency of an fma chain; larger bodies do it with less, and their code is what costs.
  // Where nothing but the end of the tensor ends the loop, 6 do better still (exp and gelu by 9 %, 16 KB of registers
  // allowing): its step of 96 elements would leave tails in shorter axes.
  s.vectors = cost <= 64 ? 4 : cost <= 160 ? 2 : 1;
  // Around a short body the spills of the O0 allocator weigh most, and its code compiles soon enough: sigmoid on halves
  // runs at 1.17 of the hand-written kernel's speed instead of 0.98, for 2.8 ms instead of 1.7.
  if (cost <= 30 && options.registers >= 32) s.profile = Profile::Carrying;
  if (s.vectors == 4 && k.axes.size() == 1 && s.profile == Profile::Straight && options.registers >= 32) s.vectors = 6;
  if (options.registers < 16 && !k.has_reduction()) s.vectors = std::min(s.vectors, 2);
  if (has_wide_values(k)) s.vectors = std::max(1, s.vectors / 2);
  if (has_strided_access(k)) s.vectors = 1;
  s.nontemporal = options.nontemporal && !has_strided_access(k);
  return s;
}

int64_t blocks_per_outer(const kernel::Kernel& k, const Schedule& s, const int64_t* extents) {
  if (k.axes.empty()) return 1;
  return (extents[k.axes.size() - 1] + s.block - 1) / s.block;
}

int64_t unit_count(const kernel::Kernel& k, const Schedule& s, const int64_t* extents) {
  int64_t units = k.has_reduction() ? 1 : blocks_per_outer(k, s, extents);
  for (size_t a = 0; a + 1 < k.axes.size(); ++a) units *= extents[a];
  return units;
}

std::string print(const Schedule& s) {
  std::string text = "u" + std::to_string(s.vectors) + " block" + std::to_string(s.block);
  if (s.nontemporal) text += " nt";
  text += s.profile == Profile::Carrying ? " carrying" : " straight";
  if (s.fast_math) text += " fast";
  return text;
}

}  // namespace fxjit::inline v0::codegen
