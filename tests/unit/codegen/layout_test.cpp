// Sizes around the steps and blocks, strides of each class, alignment, splits of the units, memory around outputs.
#include <gtest/gtest.h>

#include <bit>

#include "codegen/cpu/cpu_hooks.h"
#include "memory.h"

namespace fxjit::test {
namespace {

constexpr const char* kTypeNames[] = {"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8"};
constexpr int64_t kSizes[] = {0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 129, 4095, 4096, 4097, 9000};

// y = x * w + x over one axis with these classes of x, w and y.
std::string text_of(const std::string& t, const std::string& axes, const std::string& x, const std::string& w,
                    const std::string& y) {
  return "kernel\n  axes " + axes + "\n  b0 = in " + t + " [" + x + "]\n  b1 = in " + t + " [" + w + "]\n  b2 = out " +
         t + " [" + y + "]\n  %0 = load b0 : " + t + "\n  %1 = load b1 : " + t + "\n  %2 = mul %0, %1 : " + t +
         "\n  %3 = add %2, %0 : " + t + "\n  store b2, %3\n";
}

TEST(Layout, OneAxis) {
  for (const char* t : kTypeNames) {
    for (const char* classes : {"unit unit unit", "unit zero unit", "any unit unit", "unit any any", "zero any unit"}) {
      const std::string c = classes;
      const size_t first = c.find(' '), second = c.rfind(' ');
      const kernel::Kernel k = kernel::parse(
          text_of(t, "parallel", c.substr(0, first), c.substr(first + 1, second - first - 1), c.substr(second + 1)));
      for (const jit::CpuTarget* target : targets()) {
        const Compiled compiled = compile(k, *target);
        for (int64_t n : kSizes) {
          const std::string what = std::string(t) + " " + classes + " n=" + std::to_string(n) + " " + target->name;
          expect_agreement(make_problem(k, {n}, {}, n % 3), compiled, equal, 1 + n % 3, what);
        }
      }
    }
  }
}

TEST(Layout, ThreeAxes) {
  const char* const cases[][3] = {
      {"any, any, unit", "zero, any, unit", "any, any, unit"},
      {"unit, any, any", "any, zero, zero", "any, any, unit"},
      {"zero, zero, unit", "any, unit, zero", "any, unit, any"},
      {"any, any, any", "any, any, any", "any, any, any"},
  };
  for (const char* t : {"f32", "f16", "i64", "u8"}) {
    for (const auto& c : cases) {
      const kernel::Kernel k = kernel::parse(text_of(t, "parallel, parallel, parallel", c[0], c[1], c[2]));
      for (const jit::CpuTarget* target : targets()) {
        const Compiled compiled = compile(k, *target);
        for (const auto& extents : std::vector<std::vector<int64_t>>{
                 {3, 5, 70}, {2, 1, 4100}, {7, 3, 1}, {0, 3, 5}, {3, 0, 5}, {3, 5, 0}, {1, 40, 16}}) {
          for (int cuts : {1, 4}) expect_agreement(make_problem(k, extents), compiled, equal, cuts, target->name);
        }
      }
    }
  }
}

TEST(Layout, BoolsAreBytes) {
  const kernel::Kernel k = kernel::parse(R"(kernel
  axes parallel
  b0 = in bool [unit]
  b1 = in f32 [unit]
  b2 = out bool [unit]
  b3 = out f32 [unit]
  %0 = load b0 : bool
  %1 = load b1 : f32
  %2 = const 0.5 : f32
  %3 = gt %1, %2 : bool
  %4 = logical_and %0, %3 : bool
  %5 = where %4, %1, %2 : f32
  store b2, %4
  store b3, %5
)");
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    for (int64_t n : kSizes) expect_agreement(make_problem(k, {n}, {}, n % 5), compiled, equal, 2, target->name);
  }
}

TEST(Layout, NonTemporalStores) {
  for (const char* t : {"f32", "f16", "u8", "i64"}) {
    const kernel::Kernel k = kernel::parse(text_of(t, "parallel", "unit", "unit", "unit"));
    for (const jit::CpuTarget* target : targets()) {
      codegen::Schedule s = default_schedule(k, *target);
      s.nontemporal = true;
      EXPECT_NE(emit_text(k, *target, s).find("!nontemporal"), std::string::npos);
      const Compiled compiled = compile(k, *target, s);
      for (int64_t n : {1, 64, 100, 4096, 9001}) {
        expect_agreement(make_problem(k, {n}), compiled, equal, 3, std::string(t) + target->name);
      }
    }
  }
}

TEST(Layout, InPlace) {
  for (const char* t : {"f32", "f16", "i8"}) {
    const kernel::Kernel k = kernel::parse(text_of(t, "parallel", "unit", "unit", "unit"));
    for (const jit::CpuTarget* target : targets()) {
      const Compiled compiled = compile(k, *target);
      Problem p = make_problem(k, {1000});
      Block apart = p.blocks[2], x = p.blocks[0], w = p.blocks[1];
      run(compiled, {x.data(), w.data(), apart.data()}, {1000}, p.strides);
      run(compiled, {x.data(), w.data(), x.data()}, {1000}, p.strides);
      EXPECT_EQ(std::memcmp(x.data(), apart.data(), x.size), 0) << t << target->name;
    }
  }
}

// Whatever U is, results are the same.
TEST(Layout, AnyNumberOfVectors) {
  const kernel::Kernel k = kernel::parse(text_of("f32", "parallel, parallel", "any, unit", "zero, unit", "any, unit"));
  for (const jit::CpuTarget* target : targets()) {
    for (int u : {1, 2, 3, 4, 8}) {
      codegen::Schedule s = default_schedule(k, *target);
      s.vectors = u;
      const Compiled compiled = compile(k, *target, s);
      for (int64_t n : kSizes) expect_agreement(make_problem(k, {2, n}), compiled, equal, 1, std::to_string(u));
    }
  }
}

// Contraction and reassociation are written into the text only where they are asked for.
TEST(Schedule, FastMathIsAnOption) {
  const kernel::Kernel k = kernel::parse(text_of("f32", "parallel", "unit", "unit", "unit"));
  for (const jit::CpuTarget* target : targets()) {
    codegen::Schedule s = default_schedule(k, *target);
    EXPECT_EQ(emit_text(k, *target, s).find("contract"), std::string::npos);
    s.fast_math = true;
    EXPECT_NE(emit_text(k, *target, s).find("reassoc"), std::string::npos);
    expect_agreement(make_problem(k, {1000}), compile(k, *target, s), within(1e-6, 1e-6), 1, target->name);
  }
}

// What depends on scalars alone is computed before the loop, sine's branch for large arguments included.
TEST(Layout, UniformValuesAreHoisted) {
  const kernel::Kernel k = kernel::parse(R"(kernel
  axes parallel, parallel
  b0 = in f32 [any, unit]
  b1 = in f32 [unit, zero]
  b2 = out f32 [any, unit]
  s0 = f64
  %0 = load b0 : f32
  %1 = load b1 : f32
  %2 = scalar s0 : f32
  %3 = sin %2 : f32
  %4 = maximum %1, %3 : f32
  %5 = tanh %4 : f32
  %6 = mul %0, %5 : f32
  store b2, %6
)");
  for (const jit::CpuTarget* target : targets()) {
    const Compiled compiled = compile(k, *target);
    for (double scalar : {0.3, 1e6, -3e30}) {
      const Problem p = make_problem(k, {5, 133}, {std::bit_cast<uint64_t>(scalar)});
      expect_agreement(p, compiled, within(1e-6, 0), 2, target->name);
    }
    // One division a row, of one vector.
    const std::string text = emit_text(k, *target, default_schedule(k, *target));
    size_t divisions = 0;
    for (size_t at = 0; (at = text.find("fdiv", at)) != std::string::npos; ++at) ++divisions;
    EXPECT_EQ(divisions, 1u) << text;
  }
}

TEST(Schedule, OptionsAreThoseOfTheHooks) {
  for (const char* name : {"avx512", "avx2"}) {
    const codegen::TargetHooks& hooks = *codegen::find_cpu_hooks(name);
    const codegen::ScheduleOptions options = codegen::schedule_options(name);
    EXPECT_EQ(options.lanes, hooks.lanes());
    EXPECT_EQ(options.registers, hooks.registers());
  }
}

TEST(Schedule, BlocksAreWholeLines) {
  for (const char* t : kTypeNames) {
    const kernel::Kernel k = kernel::parse(text_of(t, "parallel", "unit", "unit", "unit"));
    const codegen::Schedule s = codegen::choose_schedule(k);
    EXPECT_EQ(s.block * size_of(k.buffers[2].dtype) % 64, 0u);
    const int64_t extents[] = {s.block * 3 + 1};
    EXPECT_EQ(codegen::unit_count(k, s, extents), 4);
  }
}

}  // namespace
}  // namespace fxjit::test
