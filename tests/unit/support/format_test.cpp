#include "support/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fxjit::support {
namespace {

TEST(Format, FloatsReadAsInPython) {
  const std::pair<double, const char*> cases[] = {{1.0, "1.0"},
                                                  {-0.0, "-0.0"},
                                                  {0.1, "0.1"},
                                                  {1e-5, "1e-05"},
                                                  {0.0001, "0.0001"},
                                                  {123456.789, "123456.789"},
                                                  {1e15, "1000000000000000.0"},
                                                  {1e16, "1e+16"},
                                                  {1.5e300, "1.5e+300"},
                                                  {-2.5e-10, "-2.5e-10"},
                                                  {5e-324, "5e-324"},
                                                  {1.0 / 3, "0.3333333333333333"},
                                                  {INFINITY, "inf"},
                                                  {-INFINITY, "-inf"},
                                                  {std::nan(""), "nan"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(python_float(value), text);
}

TEST(Format, StringsAreQuotedAsInPython) {
  EXPECT_EQ(python_repr("a"), "'a'");
  EXPECT_EQ(python_repr("it's"), "\"it's\"");
  EXPECT_EQ(python_repr("'\""), "'\\'\"'");
  EXPECT_EQ(python_repr("a\n\t\\\x01"), "'a\\n\\t\\\\\\x01'");
  EXPECT_EQ(python_repr("\xc3\xa9"), "'\xc3\xa9'");
  EXPECT_EQ(python_repr("\xff"), "'\\xff'");
}

TEST(Format, NearestNamesATypo) {
  const std::string_view known[] = {"strict", "fast_math", "target"};
  EXPECT_EQ(nearest("strct", known), "strict");
  EXPECT_EQ(nearest("fastmath", known), "fast_math");
  EXPECT_EQ(nearest("zzzzzz", known), "");
}

TEST(Format, SplitLeavesEmptyPartsOut) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_TRUE(split("", ',').empty());
}

TEST(Format, TablesPadTheirColumns) {
  const std::string headers[] = {"op", "name"};
  const std::vector<std::string> rows[] = {{"call", "x"}, {"o", "yy"}};
  EXPECT_EQ(table(headers, rows), "op    name\n----  ----\ncall  x\no     yy\n");
}

}  // namespace
}  // namespace fxjit::support
