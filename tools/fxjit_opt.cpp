// fxjit-opt: a kernel in text form goes in, the next stages come out.
//
//   fxjit-opt --print-kernel FILE       parsed, verified, printed
//   fxjit-opt --simplify FILE           the same after simplification
//   fxjit-opt --llvm=avx512|avx2 FILE   the LLVM IR that is emitted for a CPU; --asm=… its assembly
//   fxjit-opt --ptx=80|90 FILE          the GPU's assembly language; --ptx-llvm=… the IR before
//
// FILE may be - for standard input. Errors go to stderr, with exit status 1.
#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "jit/kernel_cache.h"
#include "jit/ptx_compiler.h"
#include "kernel/kernel.h"
#include "kernel/simplify.h"
#include "support/errors.h"

namespace {

using namespace fxjit;

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

std::string run(const std::string& stage, const std::string& target, const std::string& path) {
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
  if (argc != 3) {
    std::cerr << "usage: fxjit-opt --print-kernel | --simplify | --llvm=TARGET | --asm=TARGET | --ptx=SM | "
                 "--ptx-llvm=SM  FILE\n";
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
