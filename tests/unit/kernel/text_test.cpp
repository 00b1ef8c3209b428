#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "fxjit/errors.h"
#include "kernel/kernel.h"

namespace fxjit::kernel {
namespace {

// A row kernel with every kind of expression.
constexpr const char* kText =
    "kernel\n"
    "  axes parallel, reduction\n"
    "  b0 = in f16 [any, unit]\n"
    "  b1 = in f32 [zero, unit]\n"
    "  b2 = out f16 [any, unit]\n"
    "  b3 = out f32 [unit, zero]\n"
    "  s0 = f64\n"
    "  %0 = load b0 : f16\n"
    "  %1 = cast %0 : f32\n"
    "  %2 = scalar s0 : f32\n"
    "  %3 = mul %1, %2 : f32\n"
    "  %4 = reduce sum %3 : f32\n"
    "  %5 = extent a1 : f32\n"
    "  %6 = div %4, %5 : f32\n"
    "  %7 = const 0.5 : f32\n"
    "  %8 = gt %3, %7 : bool\n"
    "  %9 = load b1 : f32\n"
    "  %10 = where %8, %3, %9 : f32\n"
    "  %11 = sub %10, %6 : f32\n"
    "  %12 = cast %11 : f16\n"
    "  store b2, %12\n"
    "  store b3, %6\n";

TEST(KernelText, ReadsBackAsItIsWritten) {
  const Kernel k = parse(kText);
  verify(k);
  EXPECT_EQ(print(k), kText);
  EXPECT_EQ(parse(print(k)), k);
  EXPECT_TRUE(k.has_reduction());
  EXPECT_EQ(k.exprs[10].op, ops::OpId::where);
}

TEST(KernelText, ConstantsKeepTheirBits) {
  const double values[] = {
      0.1, -0.0, 1e300, 5e-324, INFINITY, -INFINITY, 1.0 / 3.0, 123456789.0, 0x1.fffffffffffffp+1023};
  for (double v : values) {
    Kernel k = parse("kernel\n axes parallel\n b0 = out f64 [unit]\n %0 = const 1 : f64\n store b0, %0\n");
    k.exprs[0].bits = std::bit_cast<uint64_t>(v);
    EXPECT_EQ(parse(print(k)), k) << v;
  }
  Kernel k =
      parse("kernel\n axes parallel\n b0 = out f64 [unit]\n %0 = const nan(0x7ff800000000beef) : f64\n store b0, %0\n");
  EXPECT_EQ(k.exprs[0].bits, 0x7ff800000000beefull);
  EXPECT_EQ(parse(print(k)), k);
  k = parse("kernel\n axes parallel\n b0 = out i64 [unit]\n %0 = const -9223372036854775808 : i64\n store b0, %0\n");
  EXPECT_EQ(static_cast<int64_t>(k.exprs[0].bits), INT64_MIN);
  EXPECT_EQ(parse(print(k)), k);
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const ValueError& e) {
    return e.what();
  }
  return "no error";
}

TEST(KernelText, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of("loop"), "kernel text, line 1, column 1: expected kernel");
  EXPECT_EQ(error_of(""), "kernel text, line 0, column 1: a kernel begins with the word kernel");
  EXPECT_EQ(error_of("kernel\n  axes parallel, sideways"),
            "kernel text, line 2, column 18: there is no kind of axis sideways");
  EXPECT_EQ(error_of("kernel\n  axes parallel\n  b0 = in f31 [unit]"),
            "kernel text, line 3, column 11: there is no element type f31");
  EXPECT_EQ(error_of("kernel\n  %0 = frob %1 : f32"), "kernel text, line 2, column 8: there is no operator frob");
  EXPECT_EQ(error_of("kernel\n  %1 = load b0 : f32"),
            "kernel text, line 2, column 3: expected %0: numbers are consecutive");
  EXPECT_EQ(error_of("kernel\n  %0 = const zero : f32"),
            "kernel text, line 2, column 14: zero is no number of type f32");
  EXPECT_EQ(error_of("kernel\n  %0 = mul %1 : f32"), "kernel text, line 2, column 15: expected ','");
  EXPECT_EQ(error_of("kernel\n  store b0, %0 x"), "kernel text, line 2, column 16: expected the end of the line");
  EXPECT_EQ(error_of("kernel\n  hello"),
            "kernel text, line 2, column 3: expected axes, a buffer, a scalar, an expression or store");
}

TEST(KernelText, CommentsAndBlankLinesAreSkipped) {
  EXPECT_EQ(parse("# a note\n\nkernel\n  # another\n  axes parallel\n").axes.size(), 1u);
}

TEST(KernelHash, ChangesWithEveryPart) {
  const Kernel k = parse(kText);
  EXPECT_EQ(hash(k), hash(parse(kText)));
  std::set<uint64_t> seen{hash(k)};
  auto differs = [&](auto&& change) {
    Kernel other = k;
    change(other);
    EXPECT_TRUE(seen.insert(hash(other)).second);
    EXPECT_NE(other, k);
  };
  differs([](Kernel& o) { o.axes[1].reduction = false; });
  differs([](Kernel& o) { o.buffers[0].dtype = DType::BFloat16; });
  differs([](Kernel& o) { o.buffers[0].strides[0] = StrideClass::Unit; });
  differs([](Kernel& o) { o.buffers[3].output = false; });
  differs([](Kernel& o) { o.scalars[0] = DType::Int64; });
  differs([](Kernel& o) { o.exprs[3].op = ops::OpId::add; });
  differs([](Kernel& o) { o.exprs[3].args[0] = 2; });
  differs([](Kernel& o) { o.exprs[4].reduce = ReduceOp::Max; });
  differs([](Kernel& o) { o.exprs[7].bits = 0; });
  differs([](Kernel& o) { std::swap(o.stores[0], o.stores[1]); });
}

}  // namespace
}  // namespace fxjit::kernel
