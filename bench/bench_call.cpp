// What a call costs beside the work it does, and what compiling a small program costs.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>

#include "fxjit/fxjit.h"
#include "jit/kernel_cache.h"

namespace fxjit {
namespace {

const auto sigmoid_lowp = fx::wrap("sigmoid_lowp", [](auto x) { return x.to(at::kFloat).sigmoid().to(at::kHalf); });
const auto add_lowp =
    fx::wrap("add_lowp", [](auto a, auto b) { return (a.to(at::kFloat) + b.to(at::kFloat)).to(at::kHalf); });
const auto foo = [](auto x, auto y) { return add_lowp(sigmoid_lowp(x), sigmoid_lowp(y)); };

template <class F>
void call(benchmark::State& state, const F& f, int64_t n) {
  c10::NoGradGuard no_grad;
  at::Tensor x = at::randn({n}, at::kHalf), y = at::randn({n}, at::kHalf);
  for (int i = 0; i < 3; ++i) f(x, y);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}

void call_graph(benchmark::State& state, int64_t n) {
  call(state, compile(fx::symbolic_trace([](fx::Proxy x, fx::Proxy y) { return foo(x, y); })), n);
}
void call_function(benchmark::State& state, int64_t n) {
  call(state, compile([](at::Tensor x, at::Tensor y) { return foo(x, y); }), n);
}
void call_eager(benchmark::State& state, int64_t n) {
  call(state, [](const at::Tensor& x, const at::Tensor& y) { return foo(x, y); }, n);
}

// The module as its own Executor runs it: values in and out.
void call_module(benchmark::State& state) {
  auto gm = fx::symbolic_trace([](fx::Proxy x, fx::Proxy y) { return foo(x, y); });
  call(state, [&](const at::Tensor& x, const at::Tensor& y) { return to_tensor((*gm)({x, y})); }, 16);
}

// Seven operators of which nothing is compiled: what the generic form costs above them.
void call_generic(benchmark::State& state) {
  auto gm = fx::symbolic_trace([](fx::Proxy x, fx::Proxy y) { return foo(x, y); });
  auto f = compile(gm);
  at::Tensor x = at::randn({16}, at::kHalf).requires_grad_(), y = at::randn({16}, at::kHalf);
  f(x, y);  // the warning
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}

// The first call of a small program: recording, passes, kernels, forward. Its kernel is known or not.
void first_call(benchmark::State& state, bool cold) {
  c10::NoGradGuard no_grad;
  at::Tensor x = at::randn({1024}, at::kHalf), y = at::randn({1024}, at::kHalf);
  auto gm = fx::symbolic_trace([](fx::Proxy a, fx::Proxy b) { return foo(a, b); });
  for (auto _ : state) {
    state.PauseTiming();
    if (cold) jit::KernelCache::process().clear();
    state.ResumeTiming();
    auto f = compile(gm);
    benchmark::DoNotOptimize(f(x, y));
  }
}

BENCHMARK_CAPTURE(call_graph, foo16, 16)->Name("call/foo16");
BENCHMARK_CAPTURE(call_function, foo16_function, 16)->Name("call/foo16_function");
BENCHMARK(call_module)->Name("call/foo16_module");
BENCHMARK_CAPTURE(call_eager, foo16_eager, 16)->Name("call/foo16_eager");
BENCHMARK(call_generic)->Name("call/foo16_generic");
BENCHMARK_CAPTURE(first_call, cold, true)->Name("compile/foo_cold")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(first_call, warm, false)->Name("compile/foo_kernel_cached")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fxjit
