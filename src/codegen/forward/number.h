// Numbers that a program computes from the numbers it is given: float arithmetic of the host.
#pragma once

#include <cstdint>

namespace fxjit::inline v0::codegen {

// A number by its index, or a constant. An int takes part as the float nearest to it, as in Python.
struct NumberOperand {
  int32_t number = -1;
  double constant = 0;
};

// In double precision, each step rounded once. Division by zero is an error of the program: `forward` does not run it.
struct NumberExpr {
  enum Op : uint8_t { Add, Sub, Mul, Div, Neg } op = Add;
  NumberOperand a, b;  // Neg has no b
};

}  // namespace fxjit::inline v0::codegen
