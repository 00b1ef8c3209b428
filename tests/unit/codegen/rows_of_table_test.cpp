// Every row of the operator table in every type of its domain, and every cast, against the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "memory.h"
#include "ops/op_table.h"
#include "ops/samples.h"

namespace fxjit::test {
namespace {

constexpr DType kTypes[] = {DType::UInt8,   DType::Int8,    DType::Int16,   DType::Int32,    DType::Int64,
                            DType::Float16, DType::Float32, DType::Float64, DType::BFloat16, DType::Bool};

kernel::Kernel kernel_of(const ops::OpRow& row, DType t) {
  const bool where = row.promote == ops::Promote::Where;
  kernel::Kernel k;
  k.axes = {{}};
  kernel::Expr op;
  op.kind = kernel::ExprKind::Op;
  op.op = row.id;
  for (int i = 0; i < row.arity; ++i) {
    const DType type = where && i == 0 ? DType::Bool : t;
    k.buffers.push_back({type, false, {kernel::StrideClass::Unit}});
    kernel::Expr load;
    load.kind = kernel::ExprKind::Load;
    load.dtype = type;
    load.index = i;
    k.exprs.push_back(load);
    op.args[i] = i;
  }
  op.dtype = ops::returns_bool(row.promote) ? DType::Bool : t;
  k.exprs.push_back(op);
  k.buffers.push_back({op.dtype, true, {kernel::StrideClass::Unit}});
  k.stores = {{row.arity, row.arity}};
  return k;
}

// Tuples of samples: all pairs for two operands, a spread of the triples for three.
Problem problem_of(const kernel::Kernel& k, ops::Samples set) {
  const size_t arity = k.buffers.size() - 1;
  std::vector<std::vector<ops::Value>> values;
  size_t count = 1;
  for (size_t i = 0; i < arity; ++i) {
    values.push_back(ops::samples(set, k.buffers[i].dtype));
    count *= values.back().size();
  }
  const size_t step = count > 50000 ? count / 50000 * 2 + 1 : 1;
  const size_t n = count / step;
  Problem p{k, {static_cast<int64_t>(n)}, std::vector<int64_t>(k.buffers.size(), 1), {}, {}};
  for (const kernel::Buffer& b : k.buffers) p.blocks.emplace_back(b.dtype, n);
  for (size_t j = 0; j < n; ++j) {
    size_t index = j * step;
    for (size_t i = 0; i < arity; ++i) {
      const DType t = k.buffers[i].dtype;
      ops::store(t, p.blocks[i].data() + j * size_of(t), values[i][index % values[i].size()]);
      index /= values[i].size();
    }
  }
  return p;
}

// Rows that contain a function of math.def have an error; it is bounded there, here only their meaning is looked at.
Same tolerance(const ops::OpRow& row) {
  if (row.domain != ops::kFloats32) return equal;
  return [](DType t, ops::Value expected, ops::Value got) {
    const double x = expected.f(), y = got.f(), largest = t == DType::Float16 ? 65504.0 : 3.4028e38;
    if (std::isinf(x) != std::isinf(y)) return std::min(std::fabs(x), std::fabs(y)) >= 0.999 * largest;
    // Differences of large terms (gelu far left) are as eager's; denormal results may be missed.
    return within(4e-6, 3e-7)(t, expected, got);
  };
}

TEST(RowsOfTable, AgreeWithTheReference) {
  for (const ops::OpRow& row : ops::rows()) {
    for (DType t : kTypes) {
      if (!ops::compiles(row.id, t)) continue;
      const Problem p = problem_of(kernel_of(row, t), row.samples);
      for (const jit::CpuTarget* target : targets()) {
        const std::string what = std::string(row.name) + " on " + to_text(t) + ", " + target->name;
        expect_agreement(p, compile(p.k, *target), tolerance(row), 2, what);
      }
    }
  }
}

TEST(Casts, AgreeWithTheReference) {
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      if (from == to) continue;
      const std::string text = std::string("kernel\n  axes parallel\n  b0 = in ") + to_text(from) +
                               " [unit]\n  b1 = out " + to_text(to) + " [unit]\n  %0 = load b0 : " + to_text(from) +
                               "\n  %1 = cast %0 : " + to_text(to) + "\n  store b1, %1\n";
      const Problem p = problem_of(kernel::parse(text), ops::Samples::All);
      for (const jit::CpuTarget* target : targets()) {
        expect_agreement(p, compile(p.k, *target), equal, 1, std::string("cast on ") + target->name);
      }
    }
  }
}

// Scalars of the launch reach the loop in every type, halves rounded through float.
TEST(Scalars, AgreeWithTheReference) {
  for (const char* kind : {"f64", "i64"}) {
    for (DType to : kTypes) {
      const std::string t = to_text(to);
      const std::string text = std::string("kernel\n  axes parallel\n  b0 = out ") + t + " [unit]\n  s0 = " + kind +
                               "\n  %0 = scalar s0 : " + t + "\n  store b0, %0\n";
      for (double v : {0.0, 1.0, -3.0, 77.3, 0.1, 1e-7}) {
        if (v < 0 && to == DType::UInt8) continue;
        const ops::Value value = kind[0] == 'f' ? ops::Value::of(v) : ops::Value::of(static_cast<int64_t>(v));
        const Problem p = make_problem(kernel::parse(text), {37}, {value.bits});
        for (const jit::CpuTarget* target : targets())
          expect_agreement(p, compile(p.k, *target), equal, 1, target->name);
      }
    }
  }
}

}  // namespace
}  // namespace fxjit::test
