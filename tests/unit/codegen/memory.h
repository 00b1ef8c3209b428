// Operands of a kernel in memory with guard bytes around, filled reproducibly; runs of the compiled code and of the
// reference over equal copies of them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "ops/value.h"

namespace fxjit::test {

// One buffer: `count` elements from `offset` elements after a 64-byte boundary.
struct Block {
  std::vector<char> bytes;
  size_t place = 0, size = 0;

  Block(DType t, size_t count, size_t offset = 0) : bytes(count * size_of(t) + 512, '\x5a') {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data()) + 64;
    place = 64 + (64 - address % 64) % 64 + offset * size_of(t);
    size = count * size_of(t);
  }
  Block(const Block& other) : Block(other, 0) {}
  Block& operator=(const Block&) = delete;
  char* data() { return bytes.data() + place; }
  const char* data() const { return bytes.data() + place; }
  // The bytes outside of the block are as they were.
  bool guards_hold() const {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if ((i < place || i >= place + size) && bytes[i] != '\x5a') return false;
    }
    return true;
  }

 private:
  // A copy has the same distance from a boundary.
  Block(const Block& other, int) : bytes(other.bytes.size(), '\x5a'), size(other.size) {
    const auto modulo = [](const char* p) { return reinterpret_cast<uintptr_t>(p) % 64; };
    place = 64 + (64 + modulo(other.data()) - modulo(bytes.data())) % 64;
    std::memcpy(data(), other.data(), size);
  }
};

struct Problem {
  kernel::Kernel k;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;  // [buffer][axis]
  std::vector<uint64_t> scalars;
  std::vector<Block> blocks;
};

// Dense buffers for these extents: class Any axes get the strides of a row-major layout over the axes that move, times
// `spread` for the last axis of class Any. `offset`: elements from a 64-byte boundary.
Problem make_problem(const kernel::Kernel& k, const std::vector<int64_t>& extents,
                     const std::vector<uint64_t>& scalars = {}, size_t offset = 0, int64_t spread = 3,
                     unsigned seed = 1);

// How much results may differ: (dtype, expected, got) → fine?
using Same = std::function<bool(DType, ops::Value, ops::Value)>;
bool equal(DType t, ops::Value a, ops::Value b);  // bit-equal; NaN is NaN
Same within(double relative, double absolute);    // for floating types; halves get one of their ulps more

// Runs compiled and reference; every output agrees, nothing else was written.
void expect_agreement(const Problem& p, const Compiled& c, const Same& same = equal, int cuts = 1,
                      const std::string& what = "");

}  // namespace fxjit::test
