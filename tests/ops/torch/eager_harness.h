// One ATen call, done by eager and by our tables: type rule, lowering, interpreted kernel.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "fxjit/dtype.h"

namespace fxjit::testing {

// "aten::add.Tensor | x row 0.3". Arguments, separated by blanks:
//   x y w       tensors [3, 5] of the type under test         row col big   [5], [3, 1], [2, 3, 4, 5] of it
//   xt          [3, 5], transposed in memory                   cl            [2, 3, 4, 5], channels last
//   z zi zh     0-dim tensors float64, int64, float16          m mrow        bool [3, 5], [5]
//   h d i       [3, 5] of float16, float64, int32
//   numbers, true, false, None, 'text', [1,2], f16 and other types, cpu, preserve, contiguous
struct CallText {
  std::string schema, arguments;
};

struct Outcome {
  enum Kind {
    Agreed,      // lowered, and equal to eager
    LeftToAten,  // refused, with a reason; eager works
    BothRefuse,  // eager raises, and so we make no kernel
    Disagreed,   // reason says how
  } kind = Disagreed;
  std::string reason;
};

Outcome try_call(const CallText& call, DType t);

}  // namespace fxjit::testing
