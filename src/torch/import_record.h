// From a record to a typed graph: what the passes work on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fxjit/fx/graph.h"
#include "fxjit/sym.h"
#include "support/result.h"
#include "torch/bind_numbers.h"
#include "torch/recorder.h"

namespace fxjit::inline v0::torch_ {

struct ImportOptions {
  // Per input one flag a dimension: whether its size is a symbol. Missing inputs and dimensions are constants.
  std::vector<std::vector<uint8_t>> dynamic_sizes;
  // Numbers of the call and where the program uses them; null: none.
  const NumberTable* numbers = nullptr;
};

struct ProgramNumber {
  fx::Node* node;  // its placeholder, marked with ops::mark_host_number
  CallNumber number;
  bool baked = false;    // good for number.bits only; nothing reads the node
  bool bounded = false;  // as in BoundNumbers
};

struct ProgramAttribute {
  std::string path;
  fx::Node* node;  // its placeholder
  at::Tensor tensor;
  ValueId value;
};

struct ProgramOutput {
  enum Kind : uint8_t {
    None,       // an undefined tensor
    Fresh,      // memory of its own, or shared with other outputs only
    Input,      // the very tensor that came in: `index` is its number
    Attribute,  // likewise
    View,       // shares memory with an input or attribute: must be made by real view operators
  } kind = Fresh;
  int32_t index = -1;
  ValueId value = -1;
  fx::Node* node = nullptr;
  int32_t storage = -1;  // outputs of one number share memory
};

struct TypedProgram {
  std::shared_ptr<ShapeEnv> env;
  // Placeholders for all inputs, for the attributes that are read, then for numbers; call_function nodes over
  // AtenCallables with all arguments of the schema in order and no keyword arguments; _operator.getitem behind
  // operators with several results; one output node with a tuple. In-place operators are there as they were called:
  // uses behind one read its node. Each node's meta "scope" is the recorder's scope.
  fx::GraphPtr graph;
  std::vector<fx::Node*> inputs;
  std::vector<ValueId> input_values;  // two inputs of one number are one tensor
  std::vector<ProgramAttribute> attributes;
  std::vector<ProgramNumber> numbers;
  std::vector<ProgramOutput> outputs;
  std::vector<int32_t> mutated_inputs;      // written by some operator, through a view or not
  std::vector<int32_t> mutated_attributes;  // indices into `attributes`
  // True where two inputs or attributes share memory and one of them is written.
  bool mutates_aliases = false;
  bool random = false;  // some operator draws numbers: nothing may be reordered or dropped around it
};

// `outputs`: the tensors of the program's result in order, undefined ones for None. Types are those that were observed:
// sizes of inputs as symbols where `options` says so, all others constants. Fails with a sentence that names the call
// and its scope where the record reads data, uses a tensor of unknown origin, or holds what a typed graph cannot say.
Result<TypedProgram> import_record(const Recorder& recorder, std::span<const at::Tensor> outputs,
                                   const ImportOptions& options = {});

// The first reason why this record cannot be compiled; empty if it can.
std::string find_obstacle(const Recorder& recorder);

// One line a call, for messages and tests: "%3 = aten::mul.Tensor(%0, 2.0)  # scope 4".
std::string print_record(const Recorder& recorder);

}  // namespace fxjit::inline v0::torch_
