// What calls of a typed graph do with memory: whose memory a result is, and what is written.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

enum class Sharing : uint8_t {
  Fresh,    // memory of its own
  View,     // a new tensor over an operand's memory, or perhaps one: reshape, contiguous, to
  Unknown,  // no rule says
};

// Of a call_function node's result. A getitem is Unknown: it may be part of anything.
Sharing sharing_of(const fx::Node& n);

// True for schemas that may give a view of their first operand.
bool may_view(std::string_view schema);

// True where the result is a view whatever the layout of its operand: not for reshape, contiguous, to, flatten.
bool is_sure_view(std::string_view schema);

// Nodes that may share memory, as connected by views and by calls of which nothing is known.
class MemoryGroups {
 public:
  explicit MemoryGroups(const fx::Graph& graph);
  // All nodes of the group, `n` among them. Nodes made later are in no group.
  std::span<fx::Node* const> members(const fx::Node& n) const;

 private:
  uint32_t find(uint32_t id) const;
  mutable std::vector<uint32_t> parent_;         // by node id
  std::vector<std::vector<fx::Node*>> members_;  // by id of the group's root
};

enum class Effect : uint8_t {
  None,
  Order,  // random numbers, or what cannot be seen: stays in order with its like
  Write,  // writes an operand
};

Effect effect_of(const fx::Node& n);

// True for a name of an in-place operator: "aten::add_.Tensor", "aten::__iadd__.Tensor".
bool is_inplace(std::string_view schema);

// True for the calls that may raise on operands of the right types: all without a rule of the ops floor.
bool may_raise(const fx::Node& n);

// By node id: true where the caller gets the node's tensor, or one that may share its memory.
std::vector<bool> reaches_caller(const fx::Graph& graph);

}  // namespace fxjit::inline v0::passes
