// compile() of functions: values, structure, policy of specialisations, bad input, gradients.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "fxjit/compile.h"
#include "helpers.h"

namespace fxjit {
namespace {

using testing::same;

at::Tensor chain(at::Tensor x, at::Tensor y) { return ((x * 2 + y).relu() - 0.5).abs(); }

class CompileFunction : public ::testing::Test {
 protected:
  c10::NoGradGuard no_grad;
};

TEST_F(CompileFunction, LaterCallsRunCompiledCodeAndEqualEager) {
  auto f = compile(chain);
  for (int i = 0; i < 3; ++i) {
    at::Tensor x = at::randn({5, 7}), y = at::randn({5, 7});
    EXPECT_TRUE(same(f(x, y), chain(x, y)));
  }
  driver::Report r = f.explain();
  ASSERT_EQ(r.specialisations.size(), 1u) << to_string(r);
  EXPECT_EQ(r.recorded_calls, 1);
  EXPECT_EQ(r.generic_calls, 0);
  EXPECT_EQ(r.specialisations[0].hits, 2);
  EXPECT_EQ(r.specialisations[0].kernels.size(), 1u) << to_string(r);
}

TEST_F(CompileFunction, NewSizeCompilesNoKernelAgain) {
  auto f = compile([](at::Tensor x) { return (x.sigmoid() * x).tanh(); });
  for (int64_t n : {64, 100, 7, 333}) {
    at::Tensor x = at::randn({n});
    f(x);
    EXPECT_TRUE(same(f(x), (x.sigmoid() * x).tanh(), 1e-5));
  }
  driver::Report r = f.explain();
  ASSERT_EQ(r.specialisations.size(), 4u) << to_string(r);
  for (size_t i = 1; i < 4; ++i)
    for (const driver::KernelReport& k : r.specialisations[i].kernels) EXPECT_TRUE(k.cached) << to_string(r);
}

TEST_F(CompileFunction, TheLeastRecentlyUsedSpecialisationGoes) {
  Options options;
  options.max_specialisations = 2;
  auto f = compile([](at::Tensor x) { return x + 1; }, options);
  for (int64_t n : {2, 3, 4, 5}) f(at::randn({n}));
  EXPECT_EQ(f.explain().specialisations.size(), 2u);
  for (int64_t n : {2, 3, 4, 5}) {
    at::Tensor x = at::randn({n});
    EXPECT_TRUE(same(f(x), x + 1));
  }
}

struct CountedWarnings : c10::WarningHandler {
  void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
  std::vector<std::string> texts;
};

TEST_F(CompileFunction, InputsThatKeepChangingAreSaidAndStayRight) {
  CountedWarnings warnings;
  c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  Options options;
  options.max_specialisations = 1;
  auto f = compile([](at::Tensor x) { return x * 3; }, options);
  for (int64_t n = 2; n < 12; ++n) {
    at::Tensor x = at::randn({n});
    EXPECT_TRUE(same(f(x), x * 3));
  }
  driver::Report r = f.explain();
  ASSERT_FALSE(r.fallbacks.empty());
  EXPECT_NE(r.fallbacks[0].reason.find("max_specialisations"), std::string::npos) << to_string(r);
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_NE(warnings.texts[0].find("max_specialisations"), std::string::npos);
}

TEST_F(CompileFunction, StructuresComeBackAsTheyWere) {
  auto f = compile([](at::Tensor x) {
    return std::tuple(x + 1, std::vector<at::Tensor>{x * 2, x * 3}, x.size(0), std::optional<at::Tensor>());
  });
  for (int i = 0; i < 2; ++i) {
    at::Tensor x = at::randn({4});
    auto [a, list, n, none] = f(x);
    EXPECT_TRUE(same(a, x + 1));
    ASSERT_EQ(list.size(), 2u);
    EXPECT_TRUE(same(list[0], x * 2));
    EXPECT_TRUE(same(list[1], x * 3));
    EXPECT_EQ(n, 4);
    EXPECT_FALSE(none.has_value());
    EXPECT_EQ(f.call({x}).size(), 3u);
  }
  auto [a, list, n, none] = f(at::randn({6}));
  EXPECT_EQ(n, 6);
}

TEST_F(CompileFunction, ResultsAliasAsInEager) {
  auto f = compile([](at::Tensor x) { return std::pair(x, x.view({-1})); });
  for (int i = 0; i < 3; ++i) {
    at::Tensor x = at::randn({2, 3});
    auto [same_tensor, view] = f(x);
    EXPECT_TRUE(same_tensor.is_same(x));
    EXPECT_TRUE(view.is_alias_of(x));
    EXPECT_TRUE(same(view, x.view({-1})));
  }
}

TEST_F(CompileFunction, MutationsAreSeenAndCounted) {
  auto program = [](at::Tensor x) {
    x.add_(1).mul_(2);
    return x.sum();
  };
  auto f = compile(program);
  for (int i = 0; i < 3; ++i) {
    at::Tensor x = at::randn({8}), y = x.clone();
    const auto version = x._version();
    at::Tensor got = f(x), want = program(y);
    EXPECT_TRUE(same(x, y));
    EXPECT_TRUE(same(got, want, 1e-5));
    EXPECT_GT(x._version(), version);
  }
}

TEST_F(CompileFunction, OutputsAreFreshAndResizable) {
  auto f = compile([](at::Tensor x) { return x + 1; });
  at::Tensor x = at::randn({16});
  f(x);
  at::Tensor a = f(x), b = f(x);
  EXPECT_NE(a.data_ptr(), b.data_ptr());
  a.resize_({64});
  EXPECT_EQ(a.numel(), 64);
  EXPECT_TRUE(same(b, x + 1));
}

TEST_F(CompileFunction, ErrorsAreEagers) {
  auto f = compile(chain);
  at::Tensor x = at::randn({3}), y = at::randn({4});
  f(x, x);
  std::string want, got;
  try {
    chain(x, y);
  } catch (const c10::Error& e) {
    want = e.what_without_backtrace();
  }
  for (int i = 0; i < 2; ++i) {
    try {
      f(x, y);
      FAIL();
    } catch (const c10::Error& e) {
      got = e.what_without_backtrace();
    }
    EXPECT_EQ(got, want);
  }
  EXPECT_TRUE(same(f(x, x), chain(x, x)));
}

TEST_F(CompileFunction, ExceptionsKeepTheirType) {
  struct Mine : std::exception {};
  bool raise = true;
  auto f = compile([&](at::Tensor x) {
    if (raise) throw Mine();
    return x + 1;
  });
  EXPECT_THROW(f(at::ones({2})), Mine);
  raise = false;
  EXPECT_TRUE(same(f(at::ones({2})), at::ones({2}) + 1));
}

TEST_F(CompileFunction, WrongNumbersOfArgumentsAreTypeErrors) {
  auto f = compile(chain);
  at::Tensor x = at::ones({2});
  EXPECT_THROW(f(x), TypeError);
  EXPECT_THROW(f(x, x, x), TypeError);
  auto two = compile([](at::Tensor t) { return std::pair(t + 1, t + 2); });
  CompiledFunction plain = two;
  EXPECT_THROW(plain(x), TypeError);
  EXPECT_THROW(plain(x), TypeError);
}

TEST_F(CompileFunction, DataReadsRunEagerlyAndSayWhy) {
  auto f = compile([](at::Tensor x) { return x.sum().item<double>() > 0 ? x + 1 : x - 1; });
  for (double v : {1.0, -1.0, 2.0}) {
    at::Tensor x = at::full({3}, v);
    EXPECT_TRUE(same(f(x), v > 0 ? x + 1 : x - 1));
  }
  driver::Report r = f.explain();
  EXPECT_TRUE(r.specialisations.empty());
  ASSERT_FALSE(r.fallbacks.empty());
  EXPECT_NE(to_string(r).find("item"), std::string::npos) << to_string(r);
}

TEST_F(CompileFunction, CapturedTensorsRunEagerlyAndStayRight) {
  at::Tensor w = at::ones({3});
  auto f = compile([&w](at::Tensor x) { return x * w; });
  at::Tensor x = at::randn({3});
  EXPECT_TRUE(same(f(x), x));
  w = at::full({3}, 2.0);
  EXPECT_TRUE(same(f(x), x * 2));
  EXPECT_TRUE(f.explain().specialisations.empty());
}

TEST_F(CompileFunction, StrictMakesFallbacksErrors) {
  Options options;
  options.strict = true;
  auto f = compile([](at::Tensor x) { return x.item<double>() > 0 ? x : -x; }, options);
  EXPECT_THROW(f(at::ones({})), RuntimeError);
  EXPECT_THROW(f(at::ones({})), RuntimeError);
  auto g = compile([](at::Tensor x) { return x + 1; }, options);
  g(at::ones({2}));
  EXPECT_TRUE(same(g(at::ones({2})), at::ones({2}) + 1));
}

TEST_F(CompileFunction, BadInputGivesEagersResult) {
  auto f = compile(chain);
  at::Tensor a = at::randn({4, 6}), b = at::randn({4, 6});
  f(a, b);
  at::Tensor big = at::randn({8, 12}), bytes = at::zeros({4 * 24 + 1}, at::kByte);
  at::Tensor unaligned = at::from_blob(static_cast<char*>(bytes.data_ptr()) + 1, {4, 6}, at::kFloat);
  std::memcpy(unaligned.data_ptr(), a.data_ptr(), 96);
  const std::pair<at::Tensor, at::Tensor> inputs[] = {
      {at::empty({0, 6}), at::empty({0, 6})},
      {a.t(), b.t()},
      {big.slice(0, 0, 8, 2).slice(1, 0, 12, 2), b},
      {at::randn({1, 6}).expand({4, 6}), b},
      {a.to(at::kDouble), b},
      {a.to(at::kHalf), b.to(at::kHalf)},
      {a.to(at::kInt), b},
      {at::randn({6}), b},
      {at::randn({}), b},
      {unaligned, b},
      {a, a},
      {big.slice(1, 0, 6).slice(0, 0, 4), big.slice(1, 1, 7).slice(0, 0, 4)},
  };
  for (const auto& [x, y] : inputs)
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(x, y), chain(x, y))) << x.sizes() << x.strides();
  for (int i = 0; i < 2; ++i) {
    EXPECT_ANY_THROW(f(at::randn({3, 6}), b));
    EXPECT_ANY_THROW(f(at::Tensor(), b));
  }
}

TEST_F(CompileFunction, OverlappingMemoryThatIsWrittenGivesEagersResult) {
  auto program = [](at::Tensor x, at::Tensor y) { return x.add_(y); };
  auto f = compile(program);
  f(at::ones({6}), at::ones({6}));
  auto pair_of = [](at::Tensor base) { return std::pair(base.slice(0, 0, 6), base.slice(0, 1, 7)); };
  for (int i = 0; i < 2; ++i) {
    at::Tensor mine = at::arange(8, at::kFloat), eagers = mine.clone();
    auto [x, y] = pair_of(mine);
    auto [ex, ey] = pair_of(eagers);
    std::string got = "none", want = "none";
    try {
      f(x, y);
    } catch (const c10::Error& e) {
      got = e.what_without_backtrace();
    }
    try {
      program(ex, ey);
    } catch (const c10::Error& e) {
      want = e.what_without_backtrace();
    }
    EXPECT_EQ(got, want);
    EXPECT_TRUE(same(mine, eagers));
  }
  at::Tensor same_tensor = at::ones({6});
  f(same_tensor, same_tensor);
  EXPECT_TRUE(same(same_tensor, at::full({6}, 2.0)));
}

TEST_F(CompileFunction, HugeSizesRaiseEagersError) {
  auto f = compile([](at::Tensor x) { return x + x.t(); });
  f(at::ones({2, 2}));
  f(at::ones({2, 2}));
  at::Tensor huge = at::zeros({1}).expand({int64_t{1} << 40, int64_t{1} << 20});
  EXPECT_ANY_THROW(f(huge));
  EXPECT_TRUE(same(f(at::ones({2, 2})), at::full({2, 2}, 2.0)));
}

TEST(FunctionGrad, GradientsAreRightAndTheWarningNamesTheGuard) {
  struct Capture : c10::WarningHandler {
    std::vector<std::string> messages;
    void process(const c10::Warning& w) override { messages.push_back(w.msg()); }
  } capture;
  auto f = compile([](at::Tensor x) { return (x * x).sum(); });
  at::Tensor plain = at::ones({3});
  f(plain);  // grad mode is on, but nothing is differentiable
  f(plain);
  EXPECT_EQ(f.explain().specialisations.size(), 1u);
  at::Tensor x = at::ones({3}).requires_grad_();
  {
    c10::WarningUtils::WarningHandlerGuard guard(&capture);
    for (int i = 0; i < 2; ++i) {
      at::Tensor y = f(x);
      ASSERT_TRUE(y.requires_grad());
      y.backward();
    }
  }
  EXPECT_TRUE(same(x.grad(), at::full({3}, 4.0)));
  ASSERT_EQ(capture.messages.size(), 1u);
  EXPECT_NE(capture.messages[0].find("NoGradGuard"), std::string::npos);
  c10::NoGradGuard no_grad;
  EXPECT_TRUE(same(f(x), (x * x).sum()));
}

TEST_F(CompileFunction, ResetForgetsAndStartsAnew) {
  double factor = 2;
  auto f = compile([&](at::Tensor x) { return x * factor; });
  at::Tensor x = at::ones({3});
  f(x);
  EXPECT_TRUE(same(f(x), x * 2));
  factor = 5;
  f.reset();
  EXPECT_TRUE(f.explain().specialisations.empty());
  EXPECT_TRUE(same(f(x), x * 5));
  EXPECT_TRUE(same(f(x), x * 5));
}

TEST_F(CompileFunction, CodeShowsForwardAndKernels) {
  auto f = compile([](at::Tensor x) { return x.relu() + 1; });
  EXPECT_NE(f.code().find("no specialisation"), std::string::npos);
  f(at::ones({3}));
  EXPECT_NE(f.code().find("define i32 @forward"), std::string::npos) << f.code();
  EXPECT_NE(f.code().find("x0"), std::string::npos);
}

}  // namespace
}  // namespace fxjit
