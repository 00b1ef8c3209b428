// fxjit-opt: one stage on a text. `--help` has the stages.
#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

#include "fxjit/fx/text.h"
#include "jit/kernel_cache.h"
#include "jit/ptx_compiler.h"
#include "kernel/kernel.h"
#include "kernel/simplify.h"
#include "support/errors.h"

namespace {

using namespace fxjit;

constexpr const char* kHelp = R"(usage: fxjit-opt STAGE FILE

Reads a text, runs one stage, and prints what comes out. FILE may be - for standard input.

FILE is a graph (docs/text-format.md; functions need not exist here):
  --print-graph          parsed, checked, printed
  --dead-code            without the nodes that nobody uses
  --print-fx             as torch.fx prints graphs
  --print-table          opcode, name, target and arguments in columns

FILE is a kernel (tests/golden/kernel has examples):
  --print-kernel         parsed, verified, printed
  --simplify             the same after simplification
  --llvm=avx512|avx2     the LLVM IR that is emitted for a CPU
  --asm=avx512|avx2      its assembly
  --ptx=80|90            the GPU's assembly language
  --ptx-llvm=80|90       the LLVM IR before

The stages of a whole program: FXJIT_DUMP=graph,kernel,llvm,asm,ptx fxjit-run FILE.

exit status: 0 done   1 the text is wrong or the stage refuses it   2 usage
)";

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::istream& in = path == "-" ? std::cin : file;
  if (!in) throw ValueError("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

const jit::CpuTarget& cpu_target(const std::string& name) {
  const jit::CpuTarget* target = jit::find_target(name);
  if (!target) throw ValueError("no CPU target '" + name + "': avx512 or avx2");
  return *target;
}

int gpu_target(const std::string& name) {
  if (name != "80" && name != "90") throw ValueError("no GPU target '" + name + "': 80 or 90");
  return std::stoi(name);
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw ValueError(result.reason());
  return *std::move(result);
}

// Empty: the stage is none of a graph.
std::optional<std::string> run_graph(const std::string& stage, const std::string& path) {
  if (stage != "--print-graph" && stage != "--dead-code" && stage != "--print-fx" && stage != "--print-table") {
    return std::nullopt;
  }
  const fx::GraphPtr graph = fx::parse_graph(read(path));
  graph->lint();
  if (stage == "--dead-code") graph->eliminate_dead_code();
  if (stage == "--print-fx") return graph->to_string() + "\n";
  if (stage == "--print-table") return graph->format_tabular();
  return fx::print_text(*graph);
}

std::string run(const std::string& stage, const std::string& target, const std::string& path) {
  if (std::optional<std::string> text = run_graph(stage, path)) return *text;
  kernel::Kernel k = kernel::parse(read(path));
  kernel::verify(k);
  if (stage == "--print-kernel") return kernel::print(k);
  if (stage == "--simplify") {
    kernel::simplify(k);
    kernel::verify(k);
    return kernel::print(k);
  }
  if (stage == "--llvm" || stage == "--asm") {
    const jit::CpuTarget& cpu = cpu_target(target);
    const codegen::Schedule schedule = codegen::choose_schedule(k);
    return stage == "--llvm" ? jit::kernel_llvm(k, schedule, cpu) : jit::kernel_assembly(k, schedule, cpu);
  }
  const codegen::Schedule schedule = jit::choose_gpu_schedule(k);
  if (stage == "--ptx") return value_of(jit::compile_ptx(k, schedule, gpu_target(target))).text;
  if (stage == "--ptx-llvm") return value_of(jit::ptx_llvm(k, schedule, gpu_target(target)));
  throw ValueError("unknown option " + stage);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::cout << kHelp;
    return 0;
  }
  if (argc != 3) {
    std::cerr << kHelp;
    return 2;
  }
  const std::string option = argv[1];
  const size_t equals = std::min(option.find('='), option.size());
  try {
    std::cout << run(option.substr(0, equals), option.substr(std::min(equals + 1, option.size())), argv[2]);
  } catch (const std::exception& e) {
    std::cerr << "fxjit-opt: " << e.what() << "\n";
    return 1;
  }
}
