// A fused group in the typed graph: the target of a call_function node that launches one kernel. It says where each
// buffer, extent and scalar of the launch comes from; the host function (floor 5) turns that into a fxjit_launch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fxjit/fx/callable.h"
#include "fxjit/fx/node.h"
#include "fxjit/sym.h"
#include "fxjit/tensor_type.h"
#include "kernel/kernel.h"

namespace fxjit::inline v0::kernel {

// The memory of one buffer. Input buffers read an operand; output buffers make a result or write an operand in place.
struct BufferBinding {
  int32_t operand = -1;      // index into the node's args, each of which is a node that is a tensor; -1: a result
  int32_t result = -1;       // index into KernelCall::results; -1: an operand
  Dim offset;                // elements from the tensor's first one; the id -1 stands for 0
  std::vector<Dim> strides;  // in elements, one per axis of the kernel; an axis of class Zero or Unit may hold any
};

struct ScalarBinding {
  enum Kind : uint8_t { Constant, Input, Size } kind = Constant;
  uint64_t bits = 0;   // Constant: f64 bits where Kernel::scalars says a floating type, else i64
  int32_t index = -1;  // Input: index into the scalars that `forward` is given, same representation
  Dim size;            // Size: the value of this expression, converted to that representation
};

// The value of a node that calls it is the tensor results[0], or with several results a tuple, of which
// _operator.getitem nodes take the parts.
class KernelCall final : public fx::Callable {
 public:
  Kernel kernel;
  std::vector<Dim> extents;            // one per axis of the kernel
  std::vector<BufferBinding> buffers;  // one per buffer
  std::vector<ScalarBinding> scalars;  // one per scalar
  std::vector<TensorTypePtr> results;
  std::vector<std::string> sources;  // names of the nodes that were fused, in order, for explain()
  std::vector<int64_t> scopes;       // the recorder's scopes that they come from, each once

  // `name` is what graph and code show: "fused_mul_sigmoid".
  explicit KernelCall(std::string name) : name_(std::move(name)) {}

  std::string_view qualified_name() const override { return name_; }
  bool is_impure(const fx::Argument& args, const fx::Argument& kwargs, bool impure_random) const override;
  // True if some buffer writes an operand.
  bool writes_operand() const;

 private:
  std::string name_;
};

// Throws InternalError where a binding does not fit the kernel or has both or neither of operand and result.
void verify(const KernelCall& call);

// The KernelCall that a node calls, or null.
inline const KernelCall* kernel_call_of(const fx::Node& n) {
  return n.op() == fx::Opcode::CallFunction ? dynamic_cast<const KernelCall*>(&n.callable()) : nullptr;
}

}  // namespace fxjit::inline v0::kernel
