#include "ops/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "fxjit/errors.h"

namespace fxjit::ops {
namespace {

TEST(Registry, FindsRowsBySchema) {
  ASSERT_NE(find("aten::sigmoid"), nullptr);
  EXPECT_EQ(find("aten::sigmoid")->id, OpId::sigmoid);
  EXPECT_EQ(find("aten::mul.Tensor"), find("aten::mul.Scalar"));
  EXPECT_EQ(find("aten::mul"), nullptr) << "the overload belongs to the name";
  EXPECT_EQ(find("aten::add.Tensor"), nullptr) << "alpha makes it a special rule";
  EXPECT_EQ(find_schema("aten::add.Tensor")->special(), SpecialRule::add);
  EXPECT_EQ(find_schema("aten::sum.dim_IntList")->reduce(), ReduceId::sum);
  EXPECT_EQ(find_schema("aten::permute")->view(), ViewRule::permute);
  EXPECT_EQ(find_schema("aten::linear")->kind, OpClass::Library);
  EXPECT_FALSE(find_schema("aten::nonzero").has_value());
}

TEST(Registry, EverySchemaHasOneRow) {
  std::set<std::string_view> names;
  for (std::string_view schema : all_schemas()) {
    EXPECT_TRUE(schema.starts_with("aten::")) << schema;
    EXPECT_TRUE(names.insert(schema).second) << schema;
    EXPECT_TRUE(find_schema(schema).has_value());
  }
  EXPECT_GT(names.size(), 100u);
}

TEST(Registry, RowsHaveTheirOwnNames) {
  std::set<std::string_view> names;
  for (const OpRow& r : rows()) {
    EXPECT_TRUE(names.insert(r.name).second) << r.name;
    EXPECT_EQ(find_name(r.name), &row(r.id));
    EXPECT_GE(r.arity, 1);
    EXPECT_LE(r.arity, 3);
    EXPECT_NE(r.domain, 0u) << r.name;
    EXPECT_FALSE(r.emit.empty());
  }
  EXPECT_EQ(find_name("frobnicate"), nullptr);
  EXPECT_THROW(row(static_cast<OpId>(kOpCount)), InternalError);
}

TEST(Registry, TranscendentalRowsLeaveFloat64ToAten) {
  EXPECT_FALSE(compiles(OpId::exp, DType::Float64));
  EXPECT_TRUE(compiles(OpId::exp, DType::BFloat16));
  EXPECT_TRUE(compiles(OpId::sqrt, DType::Float64));
  EXPECT_FALSE(compiles(OpId::add, DType::Complex64));
}

}  // namespace
}  // namespace fxjit::ops
