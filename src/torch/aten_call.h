// ATen operators as targets of graph nodes, and as calls of a specialised program.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fxjit/fx/callable.h"
#include "fxjit/fx/node.h"
#include "support/result.h"
#include "torch/host_program.h"

namespace fxjit::inline v0::torch_ {

// The target of a typed graph's node. Callable with values too, through the dispatcher.
class AtenCallable final : public fx::Callable {
 public:
  explicit AtenCallable(c10::OperatorHandle op);
  const c10::OperatorHandle& op() const { return op_; }

  // One operator is one target, whichever object names it.
  size_t hash() const override { return std::hash<std::string>()(name_); }
  bool equal(const fx::Object& other) const override {
    const auto* o = dynamic_cast<const AtenCallable*>(&other);
    return o && o->name_ == name_;
  }

  std::string_view qualified_name() const override { return name_; }  // "aten::add.Tensor"
  std::string_view base_name() const override;                        // "add"
  std::string pretty_name() const override;                           // "torch.ops.aten.add.Tensor"
  std::optional<fx::Signature> signature() const override;
  fx::Value call(std::span<const fx::Value> args, const fx::Value& kwargs) const override;
  bool is_impure(const fx::Argument& args, const fx::Argument& kwargs, bool impure_random) const override;

 private:
  c10::OperatorHandle op_;
  std::string name_;
};

// By schema name; empty for an operator that is not registered.
std::optional<c10::OperatorHandle> find_operator(std::string_view schema);

// The dispatcher's stack for a call: one value per schema argument, defaults filled in. TypeError naming the argument
// that does not fit.
std::vector<c10::IValue> make_stack(const c10::OperatorHandle& op, std::span<const fx::Value> args,
                                    const fx::Value& kwargs);

// A word of frame->symbols.
struct SymbolRef {
  int32_t index = -1;
  bool is_float = false;  // the word holds a double's bits, not an int64
};

// Where a program keeps what a node refers to. Owning functions: a Binder is often made of temporaries.
struct Binder {
  // The slot that holds the tensor of this node.
  std::function<int32_t(const fx::Node*)> slot_of;
  // The word of an argument that is a symbolic int or float; empty for other arguments. May be absent.
  std::function<std::optional<SymbolRef>(const fx::Argument&)> symbol_of;
};

class AtenCall final : public HostCall {
 public:
  // `node` is a call_function whose target is an AtenCallable or is named after a schema. `results`: slots of the
  // operator's tensors, lists flattened; -1 drops one. Fails with a reason where an argument fits no template.
  static Result<std::unique_ptr<AtenCall>> bind(const fx::Node& node, const Binder& binder,
                                                std::vector<int32_t> results);

  fxjit_status run(fxjit_frame* frame) const noexcept override;
  std::string name() const override;

  struct Arg {
    enum Kind : uint8_t { Constant, Slot, Symbol, List } kind = Constant;
    int32_t index = -1;        // Slot, Symbol
    bool is_float = false;     // Symbol: the word holds a double's bits
    bool wants_float = false;  // Symbol: the schema wants a float
    bool as_tensor = false;    // Symbol: the schema wants a (wrapped) tensor
    c10::IValue constant;      // Constant; List: an empty list of the right type
    std::vector<Arg> items;    // List
  };

 private:
  AtenCall(c10::OperatorHandle op, std::vector<Arg> args, std::vector<int32_t> results)
      : op_(std::move(op)), args_(std::move(args)), results_(std::move(results)) {}

  c10::OperatorHandle op_;
  std::vector<Arg> args_;
  std::vector<int32_t> results_;
};

}  // namespace fxjit::inline v0::torch_
