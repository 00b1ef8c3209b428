// Typed graph to kernel: a fused group of ATen calls becomes one loop nest and the recipe of its launch.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fxjit/fx/node.h"
#include "fxjit/sym.h"
#include "kernel/kernel.h"
#include "support/result.h"

namespace fxjit::inline v0::kernel {

// A buffer is the memory of a node's tensor from its data pointer on; `offset` elements are added to that.
struct BufferSource {
  fx::Node* node = nullptr;
  Dim offset;
  std::vector<Dim> strides;  // one per axis, in elements
};

// What an 8-byte scalar argument holds: f64 bits where kernel.scalars says Float64, else an int64.
struct ScalarSource {
  enum Kind : uint8_t { Constant, Symbol, Host } kind = Constant;
  uint64_t bits = 0;         // Constant
  Dim symbol;                // Symbol: an int
  fx::Node* node = nullptr;  // Host: a node whose value is a number of the host (no tensor type)
};

struct Lowered {
  Kernel kernel;
  // The launch, in the order of the kernel.
  std::vector<Dim> extents;  // one per axis
  std::vector<BufferSource> buffers;
  std::vector<ScalarSource> scalars;
};

struct LowerOptions {
  DType default_float = DType::Float32;  // torch.get_default_dtype()
  size_t max_exprs = 256;                // a larger group is refused: compile time grows with it
};

// Lowers the nodes of a group: calls of ATen operators in program order, each with a TensorType, whose operands are
// nodes of the group or have their values in memory. `outputs` are those whose tensors are to be written, in the layout
// of their types. Failure says what stands in the way: an operator or a type without code, an iteration space that
// is not common to the outputs, a view that takes a division, a reduction that is not over the innermost dimensions.
Result<Lowered> lower_group(ShapeEnv& env, std::span<fx::Node* const> nodes, std::span<fx::Node* const> outputs,
                            const LowerOptions& options = {});

// Whether the node alone would make a kernel: its operator has a row that compiles for its types.
Result<void> can_fuse(ShapeEnv& env, fx::Node* node, const LowerOptions& options = {});

// "aten::add.Tensor", or empty for a node that calls no ATen operator.
std::string_view aten_schema(const fx::Node& node);

}  // namespace fxjit::inline v0::kernel
