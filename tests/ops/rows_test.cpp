// Every row of elementwise.def that has code: compiled against interpreted, for each type of its domain, each target,
// sizes from nothing to several steps with a tail, and the layouts that kernels meet.
#include <gtest/gtest.h>

#include "op_harness.h"

namespace fxjit::testing {
namespace {

using kernel::Buffer;
using kernel::Expr;
using kernel::ExprKind;
using kernel::Kernel;
using kernel::StrideClass;
using ops::Value;

constexpr StrideClass kZero = StrideClass::Zero, kUnit = StrideClass::Unit, kAny = StrideClass::Any;

// The row alone: its operands loaded, its result stored. One list of stride classes per buffer.
Kernel row_kernel(const ops::OpRow& row, DType t, const std::vector<std::vector<StrideClass>>& strides) {
  Kernel k;
  k.axes.resize(strides[0].size());
  Expr op;
  op.kind = ExprKind::Op;
  op.op = row.id;
  op.dtype = ops::returns_bool(row.promote) ? DType::Bool : t;
  for (int i = 0; i < row.arity; ++i) {
    const bool condition = i == 0 && row.promote == ops::Promote::Where;
    k.buffers.push_back(Buffer{condition ? DType::Bool : t, false, strides[static_cast<size_t>(i)]});
    Expr load;
    load.kind = ExprKind::Load;
    load.dtype = k.buffers.back().dtype;
    load.index = i;
    k.exprs.push_back(load);
    op.args[i] = i;
  }
  k.buffers.push_back(Buffer{op.dtype, true, strides.back()});
  k.exprs.push_back(op);
  k.stores.push_back({row.arity, row.arity});
  return k;
}

std::vector<std::vector<Value>> sets_of(const ops::OpRow& row, DType t) {
  std::vector<std::vector<Value>> out(row.arity, ops::samples(row.samples, t));
  if (row.promote == ops::Promote::Where) out[0] = ops::samples(row.samples, DType::Bool);
  return out;
}

class EveryRow : public ::testing::TestWithParam<ops::OpRow> {};

TEST_P(EveryRow, Contiguous) {
  const ops::OpRow& row = GetParam();
  for (DType t : kTypes) {
    if (!ops::compiles(row.id, t)) continue;
    const Kernel k = row_kernel(row, t, std::vector<std::vector<StrideClass>>(row.arity + 1u, {kUnit}));
    for (const std::string& target : kernel_targets()) {
      for (int64_t n : {0, 1, 2, 15, 16, 17, 31, 33, 64, 65, 1000, 5003}) {
        const Shape shape{{n}, std::vector<int64_t>(row.arity + 1u, 1)};
        ASSERT_EQ(compare(k, shape, sets_of(row, t), tolerance_of(row, t), target), "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryRow, ::testing::ValuesIn(ops::rows().begin(), ops::rows().end()),
                         [](const auto& info) { return std::string(info.param.name); });

// The comparison is no formality: without tolerance it sees the last bit of a function.
TEST(Comparison, FindsADifference) {
  const ops::OpRow& row = ops::row(ops::OpId::sigmoid);
  const Kernel k = row_kernel(row, DType::Float32, {{kUnit}, {kUnit}});
  for (const std::string& target : kernel_targets()) {
    const std::string found = compare(k, {{200}, {1, 1}}, sets_of(row, DType::Float32), {}, target);
    EXPECT_NE(found.find(target), std::string::npos);
    EXPECT_NE(found.find("b1["), std::string::npos) << found;
  }
  EXPECT_FALSE(kernel_targets().empty());
}

// ---- layouts: a row of each kind, in types of each width ----

struct LayoutCase {
  const char* name;
  std::vector<std::vector<StrideClass>> classes;  // of operands x, y, z, and last of the result
  // strides for extents (m, n) or (n)
  std::vector<int64_t> (*strides)(int64_t m, int64_t n);
};

const LayoutCase kLayouts[] = {
    {"Strided", {{kAny}, {kAny}, {kAny}, {kUnit}}, [](int64_t, int64_t) { return std::vector<int64_t>{2, 3, 5, 1}; }},
    {"StridedResult",
     {{kUnit}, {kUnit}, {kUnit}, {kAny}},
     [](int64_t, int64_t) { return std::vector<int64_t>{1, 1, 1, 3}; }},
    {"Broadcast",
     {{kAny, kUnit}, {kZero, kUnit}, {kUnit, kZero}, {kAny, kUnit}},
     [](int64_t, int64_t n) { return std::vector<int64_t>{n, 1, 0, 1, 1, 0, n, 1}; }},
    {"Transposed",
     {{kUnit, kAny}, {kAny, kUnit}, {kZero, kZero}, {kAny, kUnit}},
     [](int64_t m, int64_t n) { return std::vector<int64_t>{1, m, n, 1, 0, 0, n, 1}; }},
    {"Padded",  // rows that lie apart
     {{kAny, kUnit}, {kAny, kUnit}, {kAny, kUnit}, {kAny, kUnit}},
     [](int64_t, int64_t n) { return std::vector<int64_t>{n + 3, 1, n + 1, 1, n, 1, n + 2, 1}; }},
};

class EveryLayout : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(EveryLayout, RowsOfEachArity) {
  const LayoutCase& layout = GetParam();
  const bool plane = layout.classes[0].size() == 2;
  for (ops::OpId id : {ops::OpId::neg, ops::OpId::gt, ops::OpId::add, ops::OpId::where, ops::OpId::clamp}) {
    const ops::OpRow& row = ops::row(id);
    std::vector<std::vector<StrideClass>> classes(layout.classes.begin(), layout.classes.begin() + row.arity);
    classes.push_back(layout.classes.back());
    for (DType t : {DType::Float32, DType::Float16, DType::BFloat16, DType::Int64, DType::UInt8, DType::Float64}) {
      const Kernel k = row_kernel(row, t, classes);
      for (const std::string& target : kernel_targets()) {
        for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {3, 0}, {0, 3}, {2, 5}, {5, 16}, {3, 37}, {4, 130}}) {
          const std::vector<int64_t> all = layout.strides(m, n);
          const size_t axes = plane ? 2 : 1;
          Shape shape{plane ? std::vector<int64_t>{m, n} : std::vector<int64_t>{n}, {}};
          shape.strides.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(row.arity * axes));
          shape.strides.insert(shape.strides.end(), all.end() - static_cast<std::ptrdiff_t>(axes), all.end());
          ASSERT_EQ(compare(k, shape, sets_of(row, t), {}, target), "");
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryLayout, ::testing::ValuesIn(kLayouts),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fxjit::testing
