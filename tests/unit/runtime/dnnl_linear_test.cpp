#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/libs/dnnl/linear.h"

namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, Free>;

Memory aligned(size_t bytes) { return Memory(std::aligned_alloc(64, (bytes + 127) & ~size_t{63})); }

std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> out(n);
  for (float& f : out) f = draw(engine);
  return out;
}

struct Case {
  fxjit_dnnl_shape shape;
  std::vector<float> x, w, b, y;

  Case(int64_t m, int64_t n, int64_t k, int bias) : shape{m, n, k, bias, 1} {
    x = random_floats(static_cast<size_t>(m * k), 1);
    w = random_floats(static_cast<size_t>(n * k), 2);
    b = random_floats(static_cast<size_t>(n), 3);
    y.assign(static_cast<size_t>(m * n), -7);
  }

  void run(fxjit_dnnl_linear* linear) {
    Memory packed = aligned(fxjit_dnnl_linear_packed_bytes(linear));
    Memory scratch = aligned(fxjit_dnnl_linear_scratch_bytes(linear));
    ASSERT_EQ(fxjit_dnnl_linear_pack(linear, w.data(), packed.get()), 0);
    ASSERT_EQ(fxjit_dnnl_linear_run(linear, x.data(), packed.get(), b.data(), y.data(), scratch.get()), 0);
  }

  // Largest error in units of the sum of magnitudes times the machine epsilon.
  double error() const {
    double worst = 0;
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        auto at = [](int64_t row, int64_t width, int64_t column) { return static_cast<size_t>(row * width + column); };
        double sum = shape.bias ? b[static_cast<size_t>(j)] : 0, magnitude = std::fabs(sum);
        for (int64_t k = 0; k < shape.k; ++k) {
          double product = double(x[at(i, shape.k, k)]) * w[at(j, shape.k, k)];
          sum += product;
          magnitude += std::fabs(product);
        }
        worst = std::max(worst, std::fabs(y[at(i, shape.n, j)] - sum) / (magnitude * 6e-8));
      }
    }
    return worst;
  }
};

class DnnlLinear : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* problem = fxjit_dnnl_problem()) GTEST_SKIP() << problem;
  }
};

TEST_F(DnnlLinear, VersionIsInRange) {
  EXPECT_GE(fxjit_dnnl_version(), 301);
  EXPECT_LT(fxjit_dnnl_version(), 400);
  EXPECT_EQ(fxjit_dnnl_set_path("elsewhere"), 0);  // too late
}

TEST_F(DnnlLinear, MatchesTheSum) {
  const int64_t shapes[][3] = {{1, 1, 1}, {8, 8, 8}, {1, 1024, 300}, {64, 100, 33}, {7, 17, 129}, {128, 768, 64}};
  for (auto [m, n, k] : shapes) {
    for (int bias : {0, 1}) {
      Case c(m, n, k, bias);
      fxjit_dnnl_linear* linear = fxjit_dnnl_linear_get(&c.shape, nullptr);
      ASSERT_NE(linear, nullptr);
      c.run(linear);
      EXPECT_LT(c.error(), 16) << m << "x" << n << "x" << k;  // sqrt(k) eps is what blocked summation makes
      fxjit_dnnl_linear_release(linear);
    }
  }
}

TEST_F(DnnlLinear, PrimitivesAreShared) {
  fxjit_dnnl_shape shape{4, 5, 6, 1, 1};
  fxjit_dnnl_linear* a = fxjit_dnnl_linear_get(&shape, nullptr);
  fxjit_dnnl_linear* b = fxjit_dnnl_linear_get(&shape, nullptr);
  EXPECT_EQ(a, b);
  shape.threads = 2;
  fxjit_dnnl_linear* c = fxjit_dnnl_linear_get(&shape, nullptr);
  EXPECT_NE(a, c);
  for (fxjit_dnnl_linear* l : {a, b, c}) fxjit_dnnl_linear_release(l);
}

TEST_F(DnnlLinear, APrimitiveInUseSurvivesThePassingOfTheCache) {
  Case c(3, 4, 5, 1);
  fxjit_dnnl_linear* linear = fxjit_dnnl_linear_get(&c.shape, nullptr);
  for (int64_t m = 1; m <= 300; ++m) {
    fxjit_dnnl_shape other{m, 9, 10, 0, 1};
    fxjit_dnnl_linear_release(fxjit_dnnl_linear_get(&other, nullptr));
  }
  c.run(linear);
  EXPECT_LT(c.error(), 16);
  fxjit_dnnl_linear_release(linear);
}

TEST_F(DnnlLinear, RunsInSeveralThreadsAtOnce) {
  Case base(32, 48, 64, 1);
  fxjit_dnnl_linear* linear = fxjit_dnnl_linear_get(&base.shape, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Case c(32, 48, 64, 1);
        c.run(linear);
        ASSERT_LT(c.error(), 16);
      }
    });
  }
  for (auto& t : threads) t.join();
  fxjit_dnnl_linear_release(linear);
}

}  // namespace
