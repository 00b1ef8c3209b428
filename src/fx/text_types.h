// The lines of the text format that only typed graphs have: symbols, guards, and the types of tensors.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "fx/text_reader.h"
#include "fxjit/tensor_type.h"

namespace fxjit::inline v0::fx {

// "f32[s0, 16] (1, s0) grad"; without strides where they are row-major.
void append_type(std::string& out, ShapeEnv& env, const TensorType& type);

// "symbol s0 : size(0, 1) = 6", "guard s0 < 9": a line each. What each symbol of a size implies is not written.
void append_symbols(std::string& out, const ShapeEnv& env);

// Reads these lines again, the reader standing behind their keyword, and the blanks behind them.
class TypeParser {
 public:
  TypeParser(TextReader& in, ShapeEnv& env) : in_(in), env_(env) {}

  void symbol();
  void guard();
  TensorTypePtr type();

 private:
  Dim dim();
  Dim product();
  Dim operand();
  Dim checked(Dim divisor, size_t place) const;
  std::vector<Dim> dims(char close);
  bool take(std::string_view sign);
  int32_t number(std::string_view what);
  int64_t integer(std::string_view what);
  void count();

  TextReader& in_;
  ShapeEnv& env_;
  std::unordered_map<std::string, Dim> symbols_;
  int operations_ = 0, depth_ = 0;  // of the expression that is read
};

}  // namespace fxjit::inline v0::fx
