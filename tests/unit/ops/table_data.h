// Reads the tables that tests/ops/make_tables.py writes.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "fxjit/dtype.h"
#include "ops/value.h"
#include "support/format.h"

namespace fxjit::testing {

// The lines of tests/ops/data/<name>; tests run in the root of the sources.
inline std::vector<std::string> read_table(const std::string& name) {
  std::ifstream file("tests/ops/data/" + name);
  EXPECT_TRUE(file.good()) << name;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> out;
  for (std::string_view w : support::split(line, ' ')) out.emplace_back(w);
  return out;
}

inline DType dtype_of(const std::string& text) {
#define FXJIT_DTYPE(name, value, word, bytes, kind) \
  if (text == word) return DType::name;
  FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  ADD_FAILURE() << text;
  return DType::Float32;
}

// An element from its bits in hexadecimal.
inline ops::Value element_of(DType t, const std::string& hex) {
  const uint64_t bits = std::stoull(hex, nullptr, 16);
  return ops::load(t, &bits);  // little-endian: the low bytes come first
}

inline std::string show(DType t, ops::Value v) {
  return is_floating(t) ? support::python_float(v.f()) : std::to_string(v.i());
}

inline bool same_value(DType t, ops::Value a, ops::Value b) {
  if (is_floating(t) && a.f() != a.f()) return b.f() != b.f();
  return a == b;
}

}  // namespace fxjit::testing
