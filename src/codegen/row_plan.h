// How often a row is run through, and what each pass computes, keeps and takes back.
#pragma once

#include <vector>

#include "codegen/emission.h"

namespace fxjit::inline v0::codegen {

struct RowPass {
  std::vector<int> reductions;  // expression ids
  std::vector<char> computed;   // per expression: element values to evaluate in this pass
  std::vector<int> taken;       // element values read back from where an earlier pass kept them
  std::vector<int> kept;        // element values to keep
  int vectors = 1;              // of a step
  bool stores = false;          // element stores, all in the last pass: an output may be an input's memory
};

struct RowPlan {
  // Per expression: the pass before whose loop its value is known (row values) or can be computed (element values).
  // 0 without reductions below it, one more than its operand's for a reduction.
  std::vector<int> stage;
  std::vector<RowPass> passes;
  struct Kept {
    int expr;
    int buffer;  // the output whose row holds it until its own values come, or -1: scratch
  };
  std::vector<Kept> kept;
};

// Pass p computes the reductions whose operands have stage p. An element value that two passes need and that costs more
// than a store and a load to compute again is kept: in the row of an output where that does no harm, else in scratch.
RowPlan plan_rows(const kernel::Kernel& k, const std::vector<Level>& levels, const std::vector<char>& needed,
                  const Schedule& schedule);

}  // namespace fxjit::inline v0::codegen
