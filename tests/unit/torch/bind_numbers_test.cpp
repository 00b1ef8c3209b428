// Which scalar of a record is which number of the call, and which numbers are good for one value only.
#include "torch/bind_numbers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "torch/convert.h"

namespace fxjit::torch_ {
namespace {

CallNumber number(double v) { return {true, std::bit_cast<uint64_t>(v), {}}; }
CallNumber number(int64_t v) { return {false, static_cast<uint64_t>(v), {}}; }

// Runs `scope` as the one scope of a record and binds its numbers.
struct Bound {
  Bound(std::vector<CallNumber> numbers, std::vector<double> literals, const std::function<void(at::Tensor)>& scope,
        bool binds = true) {
    at::Tensor x = at::ones({4});
    recorder.add_input(x);
    {
      RecordingGuard on(recorder);
      recorder.begin_scope(0);
      scope(x);
      recorder.end_scope();
    }
    NumberTable table;
    table.numbers = std::move(numbers);
    ScopeNumbers use{{}, std::move(literals), binds};
    for (size_t i = 0; i < table.numbers.size(); ++i) use.numbers.push_back(static_cast<int32_t>(i));
    table.scopes[0] = std::move(use);
    result = bind_numbers(recorder, table);
  }
  // The number at argument `i` of call `call`; -1 for none.
  int32_t at_argument(size_t call, size_t i) const {
    auto it = result.arguments.find({call, i});
    return it == result.arguments.end() ? -1 : it->second;
  }
  Recorder recorder;
  BoundNumbers result;
};

TEST(BindNumbers, AScalarWithTheValueIsTheNumber) {
  Bound b({number(2.5)}, {}, [](at::Tensor x) { x.mul(wrapped_number(2.5)); });
  EXPECT_EQ(b.at_argument(0, 1), 0);
  EXPECT_FALSE(b.result.baked[0]);
  EXPECT_TRUE(b.result.bounded[0]);
  Bound ints({number(int64_t{3})}, {}, [](at::Tensor x) { x.mul(wrapped_number(int64_t{3})); });
  EXPECT_EQ(ints.at_argument(0, 1), 0);
  EXPECT_FALSE(ints.result.bounded[0]);
}

TEST(BindNumbers, WhatCouldBeSomethingElseIsBaked) {
  auto add = [](at::Tensor x) { x.add(wrapped_number(1.0), 1); };
  EXPECT_TRUE(Bound({number(1.0)}, {}, add).result.baked[0]);  // alpha's default
  auto mul = [](at::Tensor x) { x.mul(wrapped_number(2.5)); };
  EXPECT_TRUE(Bound({number(2.5)}, {2.5}, mul).result.baked[0]);  // a literal
  Bound twins({number(2.5), number(2.5)}, {}, mul);
  EXPECT_TRUE(twins.result.baked[0] && twins.result.baked[1]);
  EXPECT_TRUE(twins.result.arguments.empty());
  EXPECT_TRUE(Bound({number(int64_t{2})}, {}, [](at::Tensor x) { x.mul(wrapped_number(2.0)); }).result.baked[0]);
}

TEST(BindNumbers, WhatDoesNotShowOrIsOfUnknownOriginIsBaked) {
  EXPECT_TRUE(Bound({number(2.5)}, {}, [](at::Tensor x) { x.relu(); }).result.baked[0]);
  EXPECT_TRUE(Bound({number(2.5)}, {}, [](at::Tensor x) { x.mul(wrapped_number(1.25)); }).result.baked[0]);
  auto twice = [](at::Tensor x) { x.mul(wrapped_number(2.5)).add(wrapped_number(2.5)); };
  EXPECT_TRUE(Bound({number(2.5)}, {}, twice).result.baked[0]);
  auto mul = [](at::Tensor x) { x.mul(wrapped_number(2.5)); };
  EXPECT_TRUE(Bound({number(2.5)}, {}, mul, /*binds=*/false).result.baked[0]);
}

TEST(BindNumbers, WhereValuesDecideAboutTypesOrSizesTheNumberIsBaked) {
  EXPECT_TRUE(Bound({number(2.5)}, {}, [](at::Tensor x) { x.pow(2.5); }).result.baked[0]);
  EXPECT_TRUE(Bound({number(int64_t{2})}, {}, [](at::Tensor x) { x.view({2, -1}); }).result.baked[0]);
  EXPECT_TRUE(Bound({number(int64_t{2})}, {}, [](at::Tensor x) { x.narrow(0, 0, 2); }).result.baked[0]);
}

TEST(BindNumbers, ValuesOutsideOfTheRangeAreBaked) {
  for (double v : {1e300, std::nan(""), -4e38}) {
    Bound b({number(v)}, {}, [v](at::Tensor x) { x.mul(wrapped_number(v)); });
    EXPECT_TRUE(b.result.baked[0]) << v;
  }
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(Bound({number(inf)}, {}, [inf](at::Tensor x) { x.mul(wrapped_number(inf)); }).result.baked[0]);
}

TEST(BindNumbers, ABakedDerivedNumberBakesWhatItIsMadeOf) {
  CallNumber derived = number(5.0);
  derived.derived = codegen::NumberExpr{codegen::NumberExpr::Mul, {0, 0}, {-1, 2.0}};
  Bound b({number(2.5), derived}, {}, [](at::Tensor x) { x.pow(5.0); });
  EXPECT_TRUE(b.result.baked[0]);
  EXPECT_TRUE(b.result.baked[1]);
}

}  // namespace
}  // namespace fxjit::torch_
