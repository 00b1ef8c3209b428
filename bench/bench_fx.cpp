// How fast graphs are made and walked, in C++ alone: the chain of additions of the table, at sizes that show
// whether time grows linearly.
#include <benchmark/benchmark.h>

#include "fxjit/fx/fx.h"
#include "fxjit/fx/text.h"

namespace {

using namespace fxjit;

fx::GraphPtr chain(int64_t n) {
  fx::GraphPtr g = fx::Graph::create();
  fx::GraphAppendingTracer tracer(*g);
  const fx::Proxy x(g->placeholder("x"), tracer);
  fx::Proxy y = x;
  for (int64_t i = 0; i < n; ++i) y = y + x;
  g->output(y);
  return g;
}

void per_node(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetComplexityN(state.range(0));
}

void BM_fx_trace_additions(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(chain(state.range(0)));
  per_node(state);
}

void BM_fx_trace_with_tracer(benchmark::State& state) {
  const int64_t n = state.range(0);
  for (auto _ : state) {
    fx::Tracer tracer;
    benchmark::DoNotOptimize(tracer.trace(fx::trace_function([n](fx::Proxy x) {
      fx::Proxy y = x;
      for (int64_t i = 0; i < n; ++i) y = y + x;
      return y;
    })));
  }
  per_node(state);
}

void BM_fx_copy(benchmark::State& state) {
  const fx::GraphPtr g = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(g->copy());
  per_node(state);
}

void BM_fx_graph_copy(benchmark::State& state) {
  const fx::GraphPtr g = chain(state.range(0));
  for (auto _ : state) {
    fx::Graph target;
    fx::NodeMap map;
    benchmark::DoNotOptimize(target.graph_copy(*g, map));
  }
  per_node(state);
}

void BM_fx_lint(benchmark::State& state) {
  const fx::GraphPtr g = chain(state.range(0));
  for (auto _ : state) g->lint();
  per_node(state);
}

void BM_fx_dead_code(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    fx::GraphPtr g = chain(state.range(0));
    g->output_node()->set_args(fx::Argument::tuple({nullptr}));
    state.ResumeTiming();
    benchmark::DoNotOptimize(g->eliminate_dead_code());
    state.PauseTiming();
    g.reset();
    state.ResumeTiming();
  }
  per_node(state);
}

void BM_fx_replace_all_uses(benchmark::State& state) {
  const fx::GraphPtr g = chain(state.range(0));
  fx::Node* x = g->nodes().begin().operator*();
  for (auto _ : state) {
    for (fx::Node* n : g->nodes()) {
      if (n != x && n->op() == fx::Opcode::CallFunction) n->replace_all_uses_with(n);
    }
  }
  per_node(state);
}

void BM_fx_print(benchmark::State& state) {
  const fx::GraphPtr g = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(g->to_string());
  per_node(state);
}

void BM_fx_print_text(benchmark::State& state) {
  const fx::GraphPtr g = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(fx::print_text(*g));
  per_node(state);
}

void BM_fx_parse_text(benchmark::State& state) {
  const std::string text = fx::print_text(*chain(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(fx::parse_graph(text));
  per_node(state);
}

#define FXJIT_BENCH(f) BENCHMARK(f)->Arg(1000)->Arg(20000)->Arg(100000)->Unit(benchmark::kMillisecond)
FXJIT_BENCH(BM_fx_trace_additions)->Arg(1000000);
FXJIT_BENCH(BM_fx_trace_with_tracer);
FXJIT_BENCH(BM_fx_copy)->Arg(1000000);
FXJIT_BENCH(BM_fx_graph_copy);
FXJIT_BENCH(BM_fx_lint)->Arg(1000000);
FXJIT_BENCH(BM_fx_dead_code);
FXJIT_BENCH(BM_fx_replace_all_uses);
FXJIT_BENCH(BM_fx_print);
FXJIT_BENCH(BM_fx_print_text);
FXJIT_BENCH(BM_fx_parse_text);
#undef FXJIT_BENCH

}  // namespace
