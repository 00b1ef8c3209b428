#include "fxjit/sym.h"

#include <gtest/gtest.h>

#include <random>

#include "fxjit/tensor_type.h"

namespace fxjit::inline v0 {
namespace {

Dim size(ShapeEnv& env, int32_t dim, int64_t hint) { return env.symbol({SymSource::Size, 0, dim}, hint); }

TEST(Sym, EqualStructureIsEqualId) {
  ShapeEnv env;
  Dim a = size(env, 0, 5), b = size(env, 1, 7), c = size(env, 2, 9);
  EXPECT_EQ(env.mul(a, b), env.mul(b, a));
  EXPECT_EQ(env.mul(env.mul(c, a), b), env.mul(c, env.mul(b, a)));
  EXPECT_EQ(env.add(env.add(c, a), b), env.add(b, env.add(a, c)));
  EXPECT_EQ(env.mul(env.mul(a, env.constant(3)), env.mul(b, env.constant(2))), env.mul(env.constant(6), env.mul(a, b)));
  EXPECT_EQ(env.add(env.constant(1), env.add(a, env.constant(-1))), a);
  EXPECT_EQ(env.mul(a, env.constant(0)), env.constant(0));
  EXPECT_EQ(env.floordiv(env.mul(a, b), b), a);
  EXPECT_EQ(env.mod(env.mul(a, b), b), env.constant(0));
  EXPECT_EQ(env.to_string(env.add(env.constant(2), env.mul(b, a))), "(s0*s1 + 2)");
  // The order is one of form, not of who came first.
  Dim half = env.floordiv(a, env.constant(2));
  Dim late = size(env, 3, 11);
  EXPECT_EQ(env.to_string(env.mul(half, late)), "s3*(s0 // 2)");
  EXPECT_EQ(env.to_string(env.max(env.constant(2), late)), "max(s3, 2)");
}

TEST(Sym, SizesZeroAndOneAreNumbersAndEqualHintsOneSymbol) {
  ShapeEnv env;
  EXPECT_TRUE(env.is_const(size(env, 0, 1), 1));
  EXPECT_TRUE(env.is_const(size(env, 1, 0), 0));
  EXPECT_EQ(size(env, 2, 4), size(env, 3, 4));
  EXPECT_FALSE(size(env, 2, 4) == env.symbol({SymSource::Int, 1, 0}, 4)) << "an int is no size";
  EXPECT_EQ(env.symbols().size(), 2u);
}

TEST(Sym, AnswersFromHintsBecomeGuards) {
  ShapeEnv env;
  Dim a = size(env, 0, 5), b = size(env, 1, 7);
  const size_t before = env.guards().size();
  EXPECT_TRUE(env.guard_eq(a, a));
  EXPECT_FALSE(env.guard_eq(env.constant(2), env.constant(3)));
  EXPECT_EQ(env.guards().size(), before) << "what is known needs no guard";
  EXPECT_FALSE(env.guard_eq(a, b));
  EXPECT_TRUE(env.guard_lt(a, b));
  EXPECT_TRUE(env.guard_le(a, env.constant(5)));
  EXPECT_FALSE(env.guard_le(b, a));
  ASSERT_EQ(env.guards().size(), before + 3) << "b <= a asks what a < b has answered";
  EXPECT_EQ(env.guards()[before].rel, SymGuard::Ne);
  EXPECT_EQ(env.guards()[before + 1].rel, SymGuard::Lt);
  EXPECT_EQ(env.guards()[before + 2].rel, SymGuard::Le);
}

// Random expressions: the folded form has the value that plain arithmetic gives, for other sizes too.
TEST(Sym, ExpressionsEvaluateAsPlainArithmetic) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    ShapeEnv env;
    std::vector<int64_t> values{3, 4, 11}, others{8, 2, 5};
    struct Pair {
      Dim d;
      int64_t hint, other;
    };
    std::vector<Pair> made;
    for (int32_t i = 0; i < 3; ++i) made.push_back({size(env, i, values[i]), values[i], others[i]});
    for (int64_t c : {-1, 2, 3}) made.push_back({env.constant(c), c, c});
    auto floordiv = [](int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0); };
    for (int step = 0; step < 12; ++step) {
      const Pair x = made[random() % made.size()], y = made[random() % made.size()];
      const bool divides = y.hint != 0 && y.other != 0;
      switch (random() % 5) {
        case 0:
          made.push_back({env.add(x.d, y.d), x.hint + y.hint, x.other + y.other});
          break;
        case 1:
          if (std::abs(x.hint) < 1000 && std::abs(y.hint) < 1000 && std::abs(x.other) < 1000 &&
              std::abs(y.other) < 1000)
            made.push_back({env.mul(x.d, y.d), x.hint * y.hint, x.other * y.other});
          break;
        case 2:
          made.push_back({env.max(x.d, y.d), std::max(x.hint, y.hint), std::max(x.other, y.other)});
          break;
        case 3:
          if (divides) made.push_back({env.floordiv(x.d, y.d), floordiv(x.hint, y.hint), floordiv(x.other, y.other)});
          break;
        default:
          if (divides)
            made.push_back({env.mod(x.d, y.d), x.hint - floordiv(x.hint, y.hint) * y.hint,
                            x.other - floordiv(x.other, y.other) * y.other});
          break;
      }
    }
    for (const Pair& p : made) {
      ASSERT_EQ(env.hint(p.d), p.hint) << env.to_string(p.d);
      ASSERT_EQ(env.evaluate(p.d, values), p.hint) << env.to_string(p.d);
      ASSERT_EQ(env.evaluate(p.d, others), p.other) << env.to_string(p.d);
    }
  }
}

TEST(TensorTypes, ContiguousStrides) {
  ShapeEnv env;
  Dim a = size(env, 0, 5), b = size(env, 1, 7);
  TensorType t;
  t.sizes = {a, env.constant(1), b};
  t.strides = contiguous_strides(env, t.sizes);
  EXPECT_EQ(to_string(env, t), "f32[s0, 1, s1] (s1, s1, 1)");
  EXPECT_TRUE(is_contiguous(env, t));
  t.strides[1] = env.constant(99);
  EXPECT_TRUE(is_contiguous(env, t)) << "the stride of one element is any";
  t.strides[0] = env.constant(7);
  EXPECT_FALSE(is_contiguous(env, t)) << "decided by form, not by the example's sizes";
}

}  // namespace
}  // namespace fxjit::inline v0
