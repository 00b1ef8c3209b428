// The Google Benchmark binary: what C++ can measure alone. JSON by --benchmark_format=json, with the CPU's name in its
// context. `--check[=STRIDE]` sweeps the hand-written functions against their error budgets instead (default: every
// float).
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "hand.h"

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

int check_accuracy(uint32_t stride) {
  int failed = 0;
  for (const char* name : {"exp", "sigmoid", "tanh"}) {
    HandAccuracy result;
    if (hand_accuracy(name, stride, &result) != 0) return 1;
    const bool good = result.max_ulp <= result.budget && result.wrong == 0;
    std::printf("%-8s %.3f ULP at %.9g, budget %.1f, %lld special values wrong: %s\n", name, result.max_ulp,
                static_cast<double>(result.at), result.budget, static_cast<long long>(result.wrong),
                good ? "ok" : "MISSED");
    failed += good ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--check") == 0) return check_accuracy(1);
    if (std::strncmp(argv[i], "--check=", 8) == 0) return check_accuracy(std::strtoul(argv[i] + 8, nullptr, 10));
  }
  benchmark::AddCustomContext("cpu_model", cpu_model());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
