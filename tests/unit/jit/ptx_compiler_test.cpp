// Every elementwise row as a GPU kernel: the assemblers of the CUDA toolkit accept it, and nothing in it rounds
// otherwise than written.
#include "jit/ptx_compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "codegen/nvptx/nvptx_hooks.h"
#include "jit/target_machines.h"
#include "kernel/kernel.h"
#include "ops/op_table.h"

namespace fxjit::jit {
namespace {

using kernel::Expr;
using kernel::ExprKind;
using kernel::Kernel;
using kernel::StrideClass;
namespace fs = std::filesystem;

constexpr std::array kTypes = {DType::UInt8, DType::Int8,    DType::Int16,   DType::Int32,   DType::Int64,
                               DType::Bool,  DType::Float16, DType::Float32, DType::Float64, DType::BFloat16};

int32_t load(Kernel& k, DType t, std::vector<StrideClass> strides) {
  k.buffers.push_back({t, false, std::move(strides)});
  Expr e;
  e.kind = ExprKind::Load;
  e.dtype = t;
  e.index = static_cast<int32_t>(k.buffers.size()) - 1;
  k.exprs.push_back(e);
  return static_cast<int32_t>(k.exprs.size()) - 1;
}

int32_t op(Kernel& k, ops::OpId id, DType result, std::vector<int32_t> args) {
  Expr e;
  e.kind = ExprKind::Op;
  e.dtype = result;
  e.op = id;
  std::copy(args.begin(), args.end(), e.args);
  k.exprs.push_back(e);
  return static_cast<int32_t>(k.exprs.size()) - 1;
}

void store(Kernel& k, int32_t value, std::vector<StrideClass> strides) {
  k.buffers.push_back({k.exprs[value].dtype, true, std::move(strides)});
  k.stores.push_back({static_cast<int32_t>(k.buffers.size()) - 1, value});
}

// One row of the table on operands of type `t`.
Kernel kernel_of(const ops::OpRow& row, DType t) {
  Kernel k;
  k.axes = {{}};
  std::vector<int32_t> args;
  for (int i = 0; i < row.arity; ++i) {
    const bool condition = row.promote == ops::Promote::Where && i == 0;
    args.push_back(load(k, condition ? DType::Bool : t, {StrideClass::Unit}));
  }
  store(k, op(k, row.id, ops::returns_bool(row.promote) ? DType::Bool : t, args), {StrideClass::Unit});
  return k;
}

Kernel cast_kernel(DType from, DType to) {
  Kernel k;
  k.axes = {{}};
  const int32_t x = load(k, from, {StrideClass::Unit});
  Expr e;
  e.kind = ExprKind::Cast;
  e.dtype = to;
  e.args[0] = x;
  k.exprs.push_back(e);
  store(k, static_cast<int32_t>(k.exprs.size()) - 1, {StrideClass::Unit});
  return k;
}

// (x * y + z) * scalar over two axes, every stride class, with an extent.
Kernel strided_kernel() {
  Kernel k;
  k.axes = {{}, {}};
  const int32_t x = load(k, DType::Float32, {StrideClass::Any, StrideClass::Unit});
  const int32_t y = load(k, DType::Float32, {StrideClass::Zero, StrideClass::Any});
  const int32_t z = load(k, DType::Float32, {StrideClass::Unit, StrideClass::Zero});
  k.scalars = {DType::Float64};
  Expr scalar;
  scalar.kind = ExprKind::Scalar;
  scalar.index = 0;
  const int32_t sum = op(k, ops::OpId::add, DType::Float32, {op(k, ops::OpId::mul, DType::Float32, {x, y}), z});
  k.exprs.push_back(scalar);
  const int32_t s = static_cast<int32_t>(k.exprs.size()) - 1;
  store(k, op(k, ops::OpId::mul, DType::Float32, {sum, s}), {StrideClass::Any, StrideClass::Unit});
  return k;
}

std::vector<Kernel> all_kernels() {
  std::vector<Kernel> kernels = {strided_kernel()};
  for (const ops::OpRow& row : ops::rows()) {
    for (DType t : kTypes) {
      if (ops::compiles(row.id, t)) kernels.push_back(kernel_of(row, t));
    }
  }
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      if (from != to) kernels.push_back(cast_kernel(from, to));
    }
  }
  return kernels;
}

std::string ptx(const Kernel& k, int sm) {
  kernel::verify(k);
  Result<PtxKernel> compiled = compile_ptx(k, choose_gpu_schedule(k), sm);
  if (!compiled) throw std::runtime_error(compiled.reason());
  return compiled->text;
}

// The kernels as few texts, since each is a run of an assembler: those that define nothing but themselves go into one,
// of which the header is kept once.
std::vector<std::string> texts(int sm) {
  std::vector<std::string> result = {""};
  for (const Kernel& k : all_kernels()) {
    std::string text = ptx(k, sm);
    if (text.find(".func") != text.npos || text.find("\n.global") != text.npos) {
      result.push_back(std::move(text));
      continue;
    }
    const size_t body = text.find(".address_size 64") + std::string(".address_size 64").size();
    result[0] += result[0].empty() ? text : text.substr(body);
  }
  return result;
}

fs::path tool(const char* name) { return fs::path(FXJIT_PTXAS_DIR) / name; }

// What the assembler says; empty if it accepts the text.
std::string assemble(const fs::path& assembler, const std::string& text, const std::string& arch) {
  const fs::path folder = fs::temp_directory_path() / ("fxjit-ptx-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "kernels.ptx") << text;
  const std::string command =
      assembler.string() + " -O1 -arch=" + arch + " -o /dev/null " + (folder / "kernels.ptx").string() + " 2>&1";
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> piece;
  while (pipe && std::fgets(piece.data(), piece.size(), pipe)) output += piece.data();
  const int status = pipe ? ::pclose(pipe) : -1;
  fs::remove_all(folder);
  return status == 0 ? "" : command + ": " + output.substr(0, 4000);
}

struct Assembly {
  int sm;
  const char* assembler;
  const char* arch;
};

class PtxIsAccepted : public testing::TestWithParam<Assembly> {};

TEST_P(PtxIsAccepted, EveryRowAndCast) {
  const Assembly& a = GetParam();
  if (!fs::exists(tool(a.assembler))) GTEST_SKIP() << "no " << a.assembler << " in '" << FXJIT_PTXAS_DIR << "'";
  for (const std::string& text : texts(a.sm)) EXPECT_EQ(assemble(tool(a.assembler), text, a.arch), "");
}

INSTANTIATE_TEST_SUITE_P(Ptx, PtxIsAccepted,
                         testing::Values(Assembly{80, "ptxas", "sm_80"}, Assembly{90, "ptxas", "sm_90"},
                                         Assembly{90, "ptxas-blackwell", "sm_100"}),
                         [](const auto& info) { return std::string(info.param.arch); });

TEST(PtxCompiler, TheAssemblerIsAskedForReal) {
  if (!fs::exists(tool("ptxas"))) GTEST_SKIP() << "no ptxas in '" << FXJIT_PTXAS_DIR << "'";
  std::string text = ptx(strided_kernel(), 80);
  text.replace(text.find("mul.rn.f32"), 10, "mul.xx.f32");
  EXPECT_NE(assemble(tool("ptxas"), text, "sm_80"), "");
}

// The assembler fuses a multiplication and an addition that carry no rounding of their own.
TEST(PtxCompiler, NothingIsLeftForTheAssemblerToFuse) {
  std::vector<std::string> unwanted = {".approx", ".full", ".ftz"};
  for (const char* name : {"mul", "add", "sub", "fma", "div", "sqrt", "rcp"}) {
    for (const char* type : {".f16", ".f32", ".f64", ".sat.f32"}) unwanted.push_back(std::string("\t") + name + type);
  }
  for (const Kernel& k : all_kernels()) {
    const std::string text = ptx(k, 80);
    for (const std::string& u : unwanted) ASSERT_EQ(text.find(u), std::string::npos) << u << " in " << text;
  }
}

TEST(PtxCompiler, MultiplyAndAddRoundTwice) {
  const std::string text = ptx(strided_kernel(), 90);
  EXPECT_NE(text.find("mul.rn.f32"), std::string::npos) << text;
  EXPECT_NE(text.find("add.rn.f32"), std::string::npos) << text;
  EXPECT_EQ(text.find("fma"), std::string::npos) << text;
}

TEST(PtxCompiler, HeaderAndParametersAreWhatTheLaunchNeeds) {
  const Kernel k = strided_kernel();
  const std::vector<codegen::GpuParameter> parameters = codegen::gpu_parameters(k);
  // units, blocks, 4 buffers, 2 extents, the strides of class Any (x outer, y inner, out outer), 1 scalar
  EXPECT_EQ(parameters.size(), 2u + 4 + 2 + 3 + 1);
  const std::string text = ptx(k, 80);
  EXPECT_NE(text.find(".target sm_80"), std::string::npos);
  EXPECT_NE(text.find(".version 7.0"), std::string::npos);
  EXPECT_NE(text.find(".visible .entry " + compile_ptx(k, choose_gpu_schedule(k), 80)->symbol), std::string::npos);
  size_t declared = 0;
  for (size_t at = text.find(".param .u64"); at != text.npos; at = text.find(".param .u64", at + 1)) ++declared;
  EXPECT_EQ(declared, parameters.size()) << text;
  const std::string newer = ptx(k, 90);
  EXPECT_NE(newer.find(".target sm_90"), std::string::npos);
  EXPECT_NE(newer.find(".version 8.0"), std::string::npos);
  EXPECT_NE(text.find("ld.global"), std::string::npos) << "buffers are in device memory: no generic loads";
}

TEST(PtxCompiler, ReductionsAreRefusedWithTheReason) {
  Kernel k = kernel_of(ops::row(ops::OpId::add), DType::Float32);
  k.axes[0].reduction = true;
  const Result<PtxKernel> r = compile_ptx(k, choose_gpu_schedule(k), 80);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.reason().find("reduction"), std::string::npos);
}

TEST(PtxCompiler, EmittersKnowTheDataLayout) {
  const auto description = codegen::make_nvptx_hooks(80, Kernel())->description();
  MachinePool machines;
  const auto machine = machines.get({description.triple, description.cpu, description.features, Profile::Carrying});
  EXPECT_EQ(machine->createDataLayout().getStringRepresentation(), description.data_layout);
}

}  // namespace
}  // namespace fxjit::jit
