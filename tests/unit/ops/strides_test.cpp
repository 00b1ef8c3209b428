// The layout rule against what eager gave, with constant and with symbolic sizes.
#include <gtest/gtest.h>

#include <map>

#include "ops/shape.h"
#include "table_data.h"

namespace fxjit::ops {
namespace {

std::vector<int64_t> list(std::string_view text) {
  std::vector<int64_t> out;
  for (std::string_view part : support::split(text, ' ')) {
    std::string digits;
    for (char ch : part) {
      if (ch == '-' || std::isdigit(static_cast<unsigned char>(ch))) digits += ch;
    }
    if (!digits.empty()) out.push_back(std::stoll(digits));
  }
  return out;
}

struct Shapes {
  std::vector<std::vector<int64_t>> sizes, strides;
  std::vector<int64_t> result;
};

// "add; [1, 4] [8, 2]; [4] [1] = [4, 1]"
Shapes parse(const std::string& line) {
  Shapes out;
  const size_t equals = line.find('=');
  out.result = list(std::string_view(line).substr(equals + 1));
  const auto parts = support::split(std::string_view(line).substr(0, equals), ';');
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t middle = parts[i].find(']') + 1;
    out.sizes.push_back(list(parts[i].substr(0, middle)));
    out.strides.push_back(list(parts[i].substr(middle)));
  }
  return out;
}

// Sizes as symbols, and strides as products of them where they are that, as the import of a tensor does.
class Importer {
 public:
  Importer(ShapeEnv& env, bool symbolic) : env_(env), symbolic_(symbolic) {}

  Layout run(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    Layout out;
    for (size_t d = 0; d < sizes.size(); ++d) out.sizes.push_back(size(sizes[d], static_cast<int32_t>(d)));
    for (size_t d = 0; d < sizes.size(); ++d) out.strides.push_back(stride(out, sizes, strides, d));
    ++input_;
    return out;
  }

 private:
  Dim size(int64_t v, int32_t d) { return symbolic_ ? env_.symbol({SymSource::Size, input_, d}, v) : env_.constant(v); }

  // The product of the sizes of the dimensions inside it, if the stride is that.
  Dim stride(const Layout& out, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, size_t d) {
    if (!symbolic_ || strides[d] <= 1) return env_.constant(strides[d]);
    Dim product = env_.constant(1);
    int64_t value = 1;
    std::vector<bool> used(sizes.size());
    while (value < strides[d]) {
      bool found = false;
      for (size_t i = 0; i < sizes.size() && !found; ++i) {
        if (used[i] || i == d || strides[i] != value || sizes[i] == 1) continue;
        used[i] = found = true;
        product = env_.mul(product, out.sizes[i]);
        value *= sizes[i];
      }
      if (!found) break;
    }
    if (value == strides[d]) return product;
    return env_.symbol({SymSource::Stride, input_, static_cast<int32_t>(d)}, strides[d]);
  }

  ShapeEnv& env_;
  bool symbolic_;
  int32_t input_ = 0;
};

void check(const std::string& line, bool symbolic) {
  const Shapes s = parse(line);
  ShapeEnv env;
  Importer importer(env, symbolic);
  std::vector<Layout> operands;
  std::vector<const Dims*> sizes;
  for (size_t i = 0; i < s.sizes.size(); ++i) operands.push_back(importer.run(s.sizes[i], s.strides[i]));
  for (const Layout& l : operands) sizes.push_back(&l.sizes);
  const Result<Dims> shape = broadcast(env, sizes);
  ASSERT_TRUE(shape.ok()) << line;
  std::vector<int64_t> got;
  for (Dim d : iterator_strides(env, *shape, operands)) got.push_back(env.hint(d));
  EXPECT_EQ(got, s.result) << line << (symbolic ? " with symbols" : "");
}

TEST(IteratorStrides, AgreeWithEager) {
  for (const std::string& line : testing::read_table("strides.txt")) check(line, false);
}

TEST(IteratorStrides, AgreeWithEagerForSymbols) {
  for (const std::string& line : testing::read_table("strides.txt")) check(line, true);
}

}  // namespace
}  // namespace fxjit::ops
