// The specialised form of `forward`: what its emitter is told, and where its values live. No LLVM here: the driver and
// the host's callee tables read this.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/forward/number.h"
#include "codegen/forward/tensor_layout.h"
#include "codegen/schedule.h"
#include "fxjit/fx/graph.h"
#include "fxjit/sym.h"
#include "fxjit/tensor_type.h"
#include "kernel/kernel_call.h"

namespace fxjit::inline v0::codegen {

// One argument of `forward`. Tensors arrive in `in`, numbers in `scalars` (f64 or i64 bits), both at this input's
// index; SymSource::input is the same index.
struct ForwardInput {
  enum Kind : uint8_t { Tensor, Number } kind = Tensor;
  const fx::Node* node = nullptr;  // placeholder or get_attr; null for an input that the graph lost
  TensorTypePtr type;              // Tensor: dtype, device, rank, sizes and strides are guarded
  uint64_t key_set = 0;            // Tensor: the whole word is guarded
  // Tensor: asked of the host through a function `bool (void* tensor)`; empty where it makes no difference.
  std::optional<bool> requires_grad;
  std::optional<uint64_t> baked;      // Number: the bits that the graph was specialised for; empty for a symbol
  bool is_float = false;              // Number: the bits are a float's
  bool fits_bfloat16 = false;         // Number: guarded to be within bfloat16's range, or infinite
  std::optional<NumberExpr> derived;  // Number: computed from other inputs (by their index), not read
};

struct KernelChoice {
  Schedule schedule;
  // A second variant, of the same block, taken when each output has at least this many bytes, lies on a 64-byte
  // boundary and has outer strides of 64-byte multiples.
  std::optional<Schedule> nontemporal;
  int64_t nontemporal_bytes = 0;
};

struct ForwardInputs {
  std::vector<ForwardInput> inputs;
  std::vector<uint64_t> words;  // guarded: frame->words[i] is words[i]
  // Pairs of tensor inputs that must not share a storage (one of them is written).
  std::vector<std::pair<int32_t, int32_t>> apart;
  std::vector<Dim> callee_dims;         // frame->symbols[i] is the value of callee_dims[i] whenever a callee runs
  std::vector<int32_t> callee_numbers;  // inputs; their bits follow callee_dims in frame->symbols
  std::map<const fx::Node*, KernelChoice> kernels;  // for each node whose target is a KernelCall
  TensorLayout layout;
};

// A tensor of the graph: a node's value, or one result of a kernel with several.
struct ForwardValue {
  enum Where : uint8_t {
    Input,    // in[index]; slot `index` borrows it while callees need it
    Slot,     // frame->slots[index], owned
    Scratch,  // region `index` of the arena: only kernels touch it
    Nowhere,  // a tuple of kernel results, or a number
  } where = Nowhere;
  int32_t index = -1;
  TensorTypePtr type;  // may be null where only callees use it
};

struct ScratchRegion {
  Dim numel;  // elements
  int64_t element_bytes = 0;
  Dim offset = {};  // bytes from the arena's base, a multiple of 64
};

struct ForwardOutput {
  int32_t slot = -1;   // or input index, which is the input's slot
  bool owned = false;  // out[i] is a reference of its own; else the host takes one before it empties the slots
};

struct SpecialisedStep {
  const fx::Node* node = nullptr;  // a kernel or a call through the table, for which its index here is the number
  std::vector<int32_t> results;    // values it makes: one, or one per result of its kernel
  std::vector<int32_t> releases;   // slots that are dropped after it
};

struct SpecialisedPlan {
  int32_t inputs = 0;
  int32_t slots = 0;  // the first `inputs` ones borrow the inputs; the host empties them when `forward` has returned
  // Words of frame->symbols: callee_dims, callee_numbers, then the ShapeEnv's symbols where stores_symbols.
  int32_t symbols = 0;
  bool stores_symbols = false;  // there is more than one chunk: later ones read the symbols from the frame
  std::vector<ForwardValue> values;
  std::vector<int32_t> value_by_id;  // by Node::id: index into values, -1 for none
  std::vector<SpecialisedStep> steps;
  std::vector<bool> input_needs_slot;
  std::vector<ScratchRegion> regions;
  Dim arena_bytes;                     // of all regions together
  std::vector<ForwardOutput> outputs;  // one per node in the output's argument, in order, repetitions included

  const ForwardValue& value_of(const fx::Node& n) const { return values[value_by_id[n.id()]]; }
  // The slot from which a callee reads the node's value. InternalError where it has none.
  int32_t slot_of(const fx::Node& n) const;
};

// Steps that one function of the emitted code holds.
inline constexpr size_t kStepsPerFunction = 256;

SpecialisedPlan plan_specialised(const fx::Graph& typed, ShapeEnv& env, const ForwardInputs& inputs);

}  // namespace fxjit::inline v0::codegen
