// Calls that stay with ATen or a library, or that decompose later: result types by formulas of torch's documentation.
#include <algorithm>

#include "ops/shape.h"
#include "passes/infer.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Node;
using Types = std::optional<std::vector<TensorTypePtr>>;
using Dims = std::vector<Dim>;

const TensorType* tensor(const Node& n, size_t i) {
  const Node* operand = i < n.args().size() ? n.arg(i).node_or_null() : nullptr;
  return operand ? operand->tensor_type().get() : nullptr;
}

TensorTypePtr like(const TensorType& t, Dims sizes, Dims strides) {
  auto out = std::make_shared<TensorType>(t);
  out->is_wrapped_number = false;
  out->sizes = std::move(sizes);
  out->strides = std::move(strides);
  return out;
}

TensorTypePtr contiguous(ShapeEnv& env, const TensorType& t, Dims sizes) {
  Dims strides = contiguous_strides(env, sizes);
  return like(t, std::move(sizes), std::move(strides));
}

// Products of the last two dimensions, the leading ones alike.
Types product(ShapeEnv& env, const TensorType* a, const TensorType* b, size_t rank) {
  if (!a || !b || a->rank() != rank || b->rank() != rank || a->dtype != b->dtype) return {};
  for (size_t d = 0; d + 2 < rank; ++d)
    if (!env.guard_eq(a->sizes[d], b->sizes[d])) return {};
  if (!env.guard_eq(a->sizes[rank - 1], b->sizes[rank - 2])) return {};
  Dims sizes = a->sizes;
  sizes.back() = b->sizes.back();
  return {{contiguous(env, *a, std::move(sizes))}};
}

Types mm(const Node& n, ShapeEnv& env) { return product(env, tensor(n, 0), tensor(n, 1), 2); }
Types bmm(const Node& n, ShapeEnv& env) { return product(env, tensor(n, 0), tensor(n, 1), 3); }
Types addmm(const Node& n, ShapeEnv& env) { return product(env, tensor(n, 1), tensor(n, 2), 2); }
Types baddbmm(const Node& n, ShapeEnv& env) { return product(env, tensor(n, 1), tensor(n, 2), 3); }

// Rows of any leading dimensions times a matrix, or matrices whose leading dimensions broadcast.
Types matmul(const Node& n, ShapeEnv& env) {
  const TensorType *a = tensor(n, 0), *b = tensor(n, 1);
  if (!a || !b || a->rank() < 2 || b->rank() < 2 || a->rank() < b->rank() || a->dtype != b->dtype) return {};
  if (!env.guard_eq(a->sizes.back(), b->sizes[b->rank() - 2])) return {};
  Dims rows(a->sizes.begin(), a->sizes.end() - 2), others(b->sizes.begin(), b->sizes.end() - 2);
  const Dims* shapes[] = {&rows, &others};
  Result<Dims> sizes = ops::broadcast(env, shapes);
  if (!sizes) return {};
  sizes->push_back(a->sizes[a->rank() - 2]);
  sizes->push_back(b->sizes.back());
  return {{contiguous(env, *a, *std::move(sizes))}};
}

Types softmax(const Node& n, ShapeEnv& env) {
  const TensorType* x = tensor(n, 0);
  if (!x) return {};
  auto out = std::make_shared<TensorType>(*contiguous(env, *x, x->sizes));
  if (n.arg(2).is(fx::Argument::Kind::DType)) out->dtype = n.arg(2).as_dtype();
  if (n.arg(2).is_bool() && n.arg(2).as_bool()) out->dtype = DType::Float32;
  return {{out}};
}

Types layer_norm(const Node& n, ShapeEnv& env) {
  const TensorType* x = tensor(n, 0);
  if (!x || !n.arg(1).is_aggregate() || n.arg(1).size() > x->rank()) return {};
  for (size_t i = 0, first = x->rank() - n.arg(1).size(); i < n.arg(1).size(); ++i)
    if (!n.arg(1)[i].is_int() || !env.guard_eq(x->sizes[first + i], env.constant(n.arg(1)[i].as_int()))) return {};
  return {{contiguous(env, *x, x->sizes)}};
}

// The result, and mean and rstd a row; those are of the operand's type where no parameter is of another.
Types native_layer_norm(const Node& n, ShapeEnv& env) {
  Types y = layer_norm(n, env);
  if (!y) return {};
  const TensorType* x = tensor(n, 0);
  for (size_t i : {2, 3})
    if (const TensorType* p = tensor(n, i); p && p->dtype != x->dtype) return {};
  Dims sizes = x->sizes;
  for (size_t d = x->rank() - n.arg(1).size(); d < x->rank(); ++d) sizes[d] = env.constant(1);
  TensorTypePtr row = contiguous(env, *x, sizes);
  return {{(*y)[0], row, row}};
}

Dims channels_last_strides(ShapeEnv& env, const Dims& sizes) {
  Dims strides(4);
  Dim running = env.constant(1);
  for (size_t d : {1, 3, 2, 0}) {
    strides[d] = running;
    running = env.mul(running, sizes[d]);
  }
  return strides;
}

// Contiguous operands give a contiguous result, channels last one of that kind; of other layouts nothing is said.
TensorTypePtr with_format_of(ShapeEnv& env, const TensorType& x, Dims sizes) {
  if (is_contiguous(env, x)) return contiguous(env, x, std::move(sizes));
  if (x.rank() != 4 || !ops::is_channels_last(env, ops::layout_of(x))) return nullptr;
  Dims strides = channels_last_strides(env, sizes);
  return like(x, std::move(sizes), std::move(strides));
}

Types batch_norm(const Node& n, ShapeEnv& env) {
  const TensorType* x = tensor(n, 0);
  if (!x || !n.arg(5).is_bool() || n.arg(5).as_bool()) return {};  // training writes the running statistics
  if (x->rank() < 2) return {};
  for (size_t i : {1, 2, 3, 4})
    if (const TensorType* p = tensor(n, i); p && (p->rank() != 1 || !env.guard_eq(x->sizes[1], p->sizes[0]))) return {};
  TensorTypePtr y = with_format_of(env, *x, x->sizes);
  return y ? Types{{y}} : Types();
}

bool ints_of(const fx::Argument& a, size_t count, std::vector<int64_t>& out) {
  if (!a.is_aggregate() || (a.size() != count && a.size() != 1)) return false;
  for (size_t i = 0; i < count; ++i) {
    const fx::Argument& item = a[a.size() == 1 ? 0 : i];
    if (!item.is_int()) return false;
    out.push_back(item.as_int());
  }
  return true;
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Types convolution(const Node& n, ShapeEnv& env) {
  const TensorType *x = tensor(n, 0), *w = tensor(n, 1);
  if (!x || !w || x->rank() != w->rank() || x->rank() < 3 || !n.arg(6).is_bool() || n.arg(6).as_bool()) return {};
  if (n.arg(8).is_int() && !env.guard_eq(x->sizes[1], env.mul(w->sizes[1], env.constant(n.arg(8).as_int())))) return {};
  // The result is channels last if either operand is: only plain weights are known here.
  if (!is_contiguous(env, *w)) return {};
  const size_t spatial = x->rank() - 2;
  std::vector<int64_t> stride, padding, dilation;
  if (!ints_of(n.arg(3), spatial, stride) || !ints_of(n.arg(4), spatial, padding) ||
      !ints_of(n.arg(5), spatial, dilation))
    return {};
  Dims sizes{x->sizes[0], w->sizes[0]};
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = env.hint(w->sizes[i + 2]);
    env.guard_eq(w->sizes[i + 2], env.constant(extent));
    int64_t window = dilation[i] * (extent - 1) + 1;
    Dim span = env.add(x->sizes[i + 2], env.constant(2 * padding[i] - window));
    sizes.push_back(env.add(env.floordiv(span, env.constant(stride[i])), env.constant(1)));
  }
  TensorTypePtr y = with_format_of(env, *x, std::move(sizes));
  return y ? Types{{y}} : Types();
}

// (weight, indices, …)
Types embedding(const Node& n, ShapeEnv& env) {
  const TensorType *w = tensor(n, 0), *indices = tensor(n, 1);
  if (!w || !indices || w->rank() != 2) return {};
  Dims sizes = indices->sizes;
  sizes.push_back(w->sizes[1]);
  return {{contiguous(env, *w, std::move(sizes))}};
}

Types parts(const Node& n, ShapeEnv& env) {
  std::optional<Parts> cut = parts_of(n, env);
  if (!cut) return {};
  const TensorType& x = *tensor(n, 0);
  std::vector<TensorTypePtr> types;
  for (const Part& p : cut->parts) {
    Dims sizes = x.sizes, strides = x.strides;
    sizes[cut->dim] = env.constant(p.end - p.start);
    if (cut->select) {
      sizes.erase(sizes.begin() + cut->dim);
      strides.erase(strides.begin() + cut->dim);
    }
    types.push_back(like(x, std::move(sizes), std::move(strides)));
  }
  return types;
}

struct Rule {
  std::string_view schema;
  Types (*apply)(const Node&, ShapeEnv&);
};

constexpr Rule kRules[] = {
    {"aten::mm", mm},
    {"aten::bmm", bmm},
    {"aten::addmm", addmm},
    {"aten::baddbmm", baddbmm},
    {"aten::matmul", matmul},
    {"aten::softmax.int", softmax},
    {"aten::_softmax", softmax},
    {"aten::log_softmax.int", softmax},
    {"aten::_log_softmax", softmax},
    {"aten::layer_norm", layer_norm},
    {"aten::native_layer_norm", native_layer_norm},
    {"aten::batch_norm", batch_norm},
    {"aten::convolution", convolution},
    {"aten::embedding", embedding},
    {"aten::split.Tensor", parts},
    {"aten::split.sizes", parts},
    {"aten::split_with_sizes", parts},
    {"aten::chunk", parts},
    {"aten::unbind.int", parts},
};

const Rule* find(std::string_view schema) {
  const Rule* rule =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) { return r.schema == schema; });
  return rule == std::end(kRules) ? nullptr : rule;
}

}  // namespace

bool has_call_rule(std::string_view schema) { return find(schema) != nullptr; }

std::optional<std::vector<TensorTypePtr>> infer_call(const Node& n, ShapeEnv& env) {
  const Rule* rule = find(schema_of(n));
  return rule ? rule->apply(n, env) : std::nullopt;
}

}  // namespace fxjit::inline v0::passes
