#include "torch/saved_module.h"

#include <algorithm>
#include <array>

#include "fxjit/errors.h"
#include "fxjit/torch/values.h"
#include "torch/method_resolver.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

using fx::Value;
using Kind = fx::ArgumentKind;

std::string dotted(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), ':', '.');
  return out;
}

// A module that is one operator: what follows the input are its tensors and plain attributes of these names, None where
// it has none.
struct Leaf {
  std::string_view module, op;
  std::array<std::string_view, 7> operands;
};

constexpr Leaf kLeaves[] = {
    {"linear:Linear", "linear", {"weight", "bias"}},
    {"activation:ReLU", "relu", {}},
    {"activation:Sigmoid", "sigmoid", {}},
    {"activation:Tanh", "tanh", {}},
    {"activation:SiLU", "silu", {}},
    {"activation:Hardswish", "hardswish", {}},
    {"activation:Softmax", "softmax", {"dim"}},
    {"activation:LeakyReLU", "leaky_relu", {"negative_slope"}},
    {"conv:Conv1d", "conv1d", {"weight", "bias", "stride", "padding", "dilation", "groups"}},
    {"conv:Conv2d", "conv2d", {"weight", "bias", "stride", "padding", "dilation", "groups"}},
    {"conv:Conv3d", "conv3d", {"weight", "bias", "stride", "padding", "dilation", "groups"}},
    {"pooling:MaxPool2d", "max_pool2d", {"kernel_size", "stride", "padding", "dilation", "ceil_mode"}},
    {"pooling:AdaptiveAvgPool2d", "adaptive_avg_pool2d", {"output_size"}},
    {"flatten:Flatten", "flatten", {"start_dim", "end_dim"}},
    {"normalization:LayerNorm", "layer_norm", {"normalized_shape", "weight", "bias", "eps"}},
};

Value operand(const SavedModule& m, std::string_view name) {
  if (fx::ObjectRef tensor = m.attribute(name)) return tensor;
  return m.plain(name);
}

Value run(std::string_view op, std::span<const Value> args) {
  if (auto result = call_overloaded(op, args, {})) return *std::move(result);
  throw NotImplementedError("torch has no operator " + std::string(op));
}

Value batch_norm(const SavedModule& m, const Value& x) {
  const Value args[] = {x,
                        operand(m, "weight"),
                        operand(m, "bias"),
                        operand(m, "running_mean"),
                        operand(m, "running_var"),
                        false,
                        0.1,
                        m.plain("eps"),
                        false};
  return run("batch_norm", args);
}

}  // namespace

const Value& entry_at(const Value& dict, std::string_view key, Kind kind) {
  const Value* found = dict.is(Kind::Dict) ? dict.find(Value(key)) : nullptr;
  if (!found || !found->is(kind)) throw ValueError("a saved module without a proper '" + std::string(key) + "'");
  return *found;
}

SavedModule::SavedModule(Value entry)
    : BasicModule(dotted(entry_at(entry, "class", Kind::Str).as_str())),
      entry_(std::move(entry)),
      training_(entry_at(entry_, "training", Kind::Bool).as_bool()) {}

Value SavedModule::plain(std::string_view name) const {
  const Value* found = entry_at(entry_, "plain", Kind::Dict).find(Value(name));
  return found ? *found : Value();
}

Value SavedModule::call(std::span<const Value> args, const Value& kwargs) {
  std::string_view name = entry_at(entry_, "class", Kind::Str).as_str();
  constexpr std::string_view prefix = "torch.nn.modules.";
  const bool one = args.size() == 1 && (kwargs.is_none() || kwargs.size() == 0);
  if (one && name.starts_with(prefix)) {
    name.remove_prefix(prefix.size());
    for (const Leaf& leaf : kLeaves) {
      const Value padding = plain("padding_mode");
      if (leaf.module != name || (padding.is_str() && padding.as_str() != "zeros")) continue;
      std::vector<Value> all{args[0]};
      for (std::string_view o : leaf.operands) {
        if (!o.empty()) all.push_back(operand(*this, o));
      }
      return run(leaf.op, all);
    }
    if (name == "linear:Identity" || (name.starts_with("dropout:") && !training_)) return args[0];
    if (name.starts_with("batchnorm:BatchNorm") && !training_ && attribute("running_mean")) {
      return batch_norm(*this, args[0]);
    }
    if (name == "activation:GELU") {
      const Value all[] = {args[0]};
      return *call_overloaded("gelu", all, Value::dict({{"approximate", plain("approximate")}}));
    }
    if (name == "container:Sequential") {
      Value x = args[0];
      for (const fx::Attribute& a : attributes()) x = fx::ref_cast<fx::Module>(a.value)->call(std::span(&x, 1), {});
      return x;
    }
  }
  throw NotImplementedError("a saved module of class " + class_name() + (training_ ? " in training mode" : "") +
                            " cannot be called from C++");
}

}  // namespace fxjit::inline v0::torch_
