// The hand-written kernels on one thread, as hand/<kernel>/<elements>, with the bytes that they read and write.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "hand.h"

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<void, Free>;

// Memory for any case: filled with 1.0 in fp32, which read as fp16 is 0 and 1.875, so that nothing is denormal.
Buffer filled(int64_t bytes) {
  Buffer buffer(std::aligned_alloc(64, bytes));
  float* values = static_cast<float*>(buffer.get());
  for (int64_t i = 0; i < bytes / 4; ++i) values[i] = 1.0f;
  return buffer;
}

struct Shape {
  const char* name;
  int64_t count;
  int64_t cols;     // 0: pointwise
  int operands;     // of full size
  int64_t element;  // bytes
};

constexpr int64_t kMega = 1 << 20;

// copy counts bytes.
constexpr Shape kShapes[] = {
    {"copy", 4 * kMega, 0, 1, 1},     {"copy", 64 * kMega, 0, 1, 1},
    {"sigmoid_lowp", kMega, 0, 1, 2}, {"sigmoid_lowp", 16 * kMega, 0, 1, 2},
    {"add_lowp", kMega, 0, 2, 2},     {"add_lowp", 16 * kMega, 0, 2, 2},
    {"gelu_tanh", kMega, 0, 1, 4},    {"gelu_tanh", 16 * kMega, 0, 1, 4},
    {"chain12", kMega, 0, 2, 4},      {"chain12", 16 * kMega, 0, 2, 4},
    {"where_clamp", kMega, 0, 2, 4},  {"where_clamp", 16 * kMega, 0, 2, 4},
    {"exp", kMega, 0, 1, 4},          {"sigmoid", kMega, 0, 1, 4},
    {"tanh", kMega, 0, 1, 4},         {"softmax", 6144, 384, 1, 4},
    {"layer_norm", 4096, 768, 1, 4},  {"rms_norm", 4096, 768, 1, 4},
};

void run(benchmark::State& state, const Shape& shape) {
  const int64_t elements = shape.count * (shape.cols == 0 ? 1 : shape.cols);
  const int64_t bytes = elements * shape.element;
  const Buffer a = filled(bytes);
  const Buffer b = filled(bytes);
  const Buffer out = filled(bytes);
  // Rows take weight and bias from the second operand: any row of it will do.
  const HandArgs args{{a.get(), b.get(), b.get()}, out.get(), shape.count, shape.cols, 1e-5f};
  for (auto _ : state) {
    if (hand_run(shape.name, &args, nullptr) != 0) state.SkipWithError("hand_run failed");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes * (shape.operands + 1));
  state.SetItemsProcessed(state.iterations() * elements);
}

const bool kRegistered = [] {
  for (const Shape& shape : kShapes) {
    std::string name = std::string("hand/") + shape.name + "/" + std::to_string(shape.count);
    if (shape.cols != 0) name += "x" + std::to_string(shape.cols);
    benchmark::RegisterBenchmark(name.c_str(), [&shape](benchmark::State& state) { run(state, shape); });
  }
  return true;
}();

}  // namespace
