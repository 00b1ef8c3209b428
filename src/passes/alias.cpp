#include "passes/alias.h"

#include <algorithm>
#include <iterator>

#include "kernel/kernel_call.h"
#include "ops/aten_target.h"
#include "passes/infer.h"

namespace fxjit::inline v0::passes {
namespace {

using namespace std::string_view_literals;

// Operators whose result may share memory with their first operand, sorted. Those with a row and those without: a name
// that is missing here and has no rule is Unknown, which is safe; one that has a rule must be here.
constexpr std::string_view kViews[] = {
    "H",
    "T",
    "_conj",
    "_neg_view",
    "_reshape_alias",
    "_unsafe_view",
    "adjoint",
    "alias",
    "as_strided",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_to",
    "chunk",
    "conj",
    "contiguous",
    "detach",
    "diagonal",
    "dropout",
    "dsplit",
    "expand",
    "expand_as",
    "feature_dropout",
    "flatten",
    "hsplit",
    "imag",
    "lift_fresh",
    "mH",
    "mT",
    "matrix_H",
    "movedim",
    "moveaxis",
    "narrow",
    "numpy_T",
    "permute",
    "positive",
    "ravel",
    "real",
    "reshape",
    "reshape_as",
    "resolve_conj",
    "resolve_neg",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
    "vsplit",
};

// Of these, the ones that copy where the layout asks for it.
constexpr std::string_view kPerhapsViews[] = {
    "_reshape_alias", "atleast_1d",      "atleast_2d",   "atleast_3d",  "conj",     "contiguous",
    "dropout",        "feature_dropout", "flatten",      "lift_fresh",  "positive", "ravel",
    "reshape",        "reshape_as",      "resolve_conj", "resolve_neg", "to",       "type_as",
};

// Operators without a rule whose result is memory of its own and which do not raise on operands of checked types.
constexpr std::string_view kPlain[] = {
    "_softmax",
    "_log_softmax",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool2d",
    "addbmm",
    "addmm",
    "addmv",
    "amax",
    "amin",
    "arange",
    "argmax",
    "argmin",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "baddbmm",
    "batch_norm",
    "bmm",
    "cat",
    "clone",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "convolution",
    "cumprod",
    "cumsum",
    "dot",
    "empty",
    "empty_like",
    "flip",
    "full",
    "full_like",
    "gelu",
    "group_norm",
    "instance_norm",
    "interpolate",
    "layer_norm",
    "linear",
    "log_softmax",
    "logsumexp",
    "masked_fill",
    "matmul",
    "max_pool2d",
    "mean",
    "mm",
    "mv",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "norm",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "pow",
    "prelu",
    "repeat",
    "rms_norm",
    "roll",
    "scaled_dot_product_attention",
    "softmax",
    "sort",
    "stack",
    "std",
    "sum",
    "topk",
    "tril",
    "triu",
    "upsample_bilinear2d",
    "upsample_nearest2d",
    "var",
    "zeros",
    "zeros_like",
};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_plain(std::string_view schema) {
  return schema.starts_with("aten::") && contains(kPlain, ops::operator_name(schema));
}

}  // namespace

bool may_view(std::string_view schema) {
  return schema.starts_with("aten::") && contains(kViews, ops::operator_name(schema));
}

bool is_sure_view(std::string_view schema) {
  return may_view(schema) && !contains(kPerhapsViews, ops::operator_name(schema));
}

MemoryGroups::MemoryGroups(const fx::Graph& graph) : parent_(graph.created()), members_(graph.created()) {
  for (uint32_t id = 0; id < parent_.size(); ++id) parent_[id] = id;
  std::vector<fx::Node*> nodes;
  for (fx::Node* n : graph.nodes()) {
    nodes.push_back(n);
    if (n->op() != fx::Opcode::CallFunction) continue;
    bool in_place = is_inplace(schema_of(*n));
    Sharing sharing = sharing_of(*n);
    if (!in_place && sharing == Sharing::Fresh) continue;
    bool first_only = in_place || sharing == Sharing::View;
    for (fx::Node* input : n->all_input_nodes()) {
      parent_[find(input->id())] = find(n->id());
      if (first_only) break;
    }
  }
  for (fx::Node* n : nodes) members_[find(n->id())].push_back(n);
}

uint32_t MemoryGroups::find(uint32_t id) const {
  while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
  return id;
}

std::span<fx::Node* const> MemoryGroups::members(const fx::Node& n) const {
  if (n.id() >= parent_.size()) return {};
  return members_[find(n.id())];
}

bool is_inplace(std::string_view schema) {
  if (!schema.starts_with("aten::")) return false;
  std::string_view name = ops::operator_name(schema);
  if (name.starts_with("__i") && name.ends_with("__")) return true;
  return name.ends_with('_') && !name.ends_with("__");
}

namespace {

// to, type_as and contiguous give back their operand or make memory of their own, which their types often tell.
bool surely_copies(const fx::Node& n) {
  std::string_view name = ops::operator_name(schema_of(n));
  if (name != "to" && name != "type_as" && name != "contiguous") return false;
  const fx::Node* operand = n.arg(0).node_or_null();
  if (!operand || !operand->tensor_type() || !n.tensor_type()) return false;
  const TensorType &from = *operand->tensor_type(), &to = *n.tensor_type();
  if (from.dtype != to.dtype || from.strides != to.strides) return true;
  if (name != "to" || n.args().size() < 2) return false;
  const fx::Argument& copy = n.arg(n.args().size() - 2);  // (…, copy, memory_format)
  return copy.is_bool() && copy.as_bool();
}

}  // namespace

Sharing sharing_of(const fx::Node& n) {
  std::string_view schema = schema_of(n);
  if (schema.starts_with("aten::")) {
    if (surely_copies(n)) return Sharing::Fresh;
    if (may_view(schema)) return Sharing::View;
    return has_rule(schema) || is_plain(schema) ? Sharing::Fresh : Sharing::Unknown;
  }
  return kernel::kernel_call_of(n) ? Sharing::Fresh : Sharing::Unknown;
}

Effect effect_of(const fx::Node& n) {
  if (n.op() != fx::Opcode::CallFunction || !n.is_impure()) return Effect::None;
  std::string_view schema = schema_of(n);
  if (is_inplace(schema)) return Effect::Write;
  if (const auto* call = kernel::kernel_call_of(n); call && call->writes_operand()) return Effect::Write;
  // Pure but for the generator: not impure once random numbers do not count.
  if (!n.is_impure(/*impure_random=*/false)) return Effect::Order;
  return Effect::Write;
}

bool may_raise(const fx::Node& n) {
  if (n.op() != fx::Opcode::CallFunction) return false;
  std::string_view schema = schema_of(n);
  if (schema == "_operator.getitem") return false;
  if (is_inplace(schema)) return false;  // judged by its functional form
  if (!schema.starts_with("aten::")) return !kernel::kernel_call_of(n);
  if (schema == "aten::embedding") return true;  // an index may be out of range
  return !has_rule(schema) && !is_plain(schema) && !may_view(schema);
}

std::vector<bool> reaches_caller(const fx::Graph& graph) {
  std::vector<bool> reaches(graph.created(), false);
  const fx::Node* output = graph.output_node();
  if (!output) return reaches;
  std::vector<fx::Node*> work;
  auto reach = [&](fx::Node* n) {
    if (reaches[n->id()]) return;
    reaches[n->id()] = true;
    if (n->op() == fx::Opcode::CallFunction && sharing_of(*n) != Sharing::Fresh) work.push_back(n);
  };
  for (fx::Node* n : output->all_input_nodes()) reach(n);
  while (!work.empty()) {
    fx::Node* n = work.back();
    work.pop_back();
    for (fx::Node* input : n->all_input_nodes()) reach(input);
  }
  return reaches;
}

}  // namespace fxjit::inline v0::passes
