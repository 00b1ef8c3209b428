// Operators that torch's C++ functions have taken apart before the dispatcher sees them.
#include <cmath>
#include <limits>

#include "driver/record/recorded_graph.h"
#include "fxjit/torch/values.h"

namespace fxjit::inline v0::driver {
namespace {

using Args = std::vector<fx::Argument>;

// Puts a call in front of `old`, which it stands for from now on.
fx::Node* replace_by(RecordedGraph& g, fx::Node* old, const char* op, const Args& args, fx::Argument kwargs = {}) {
  const auto scope = g.graph->inserting_before(old);
  fx::Node* n = g.graph->call_function(aten(op), fx::Argument::tuple(args), std::move(kwargs));
  if (const torch_::TensorInfo* info = g.info_of(old)) g.info.insert_or_assign(n, *info);
  old->replace_all_uses_with(n);
  g.graph->erase_node(old);
  return n;
}

bool plain_call(const fx::Node& n, size_t args) { return n.args().size() == args && n.kwargs().size() == 0; }

int64_t rank(const RecordedGraph& g, const fx::Argument& a) {
  const torch_::TensorInfo* info = g.info_of(a);
  return info && info->supported ? static_cast<int64_t>(info->sizes.size()) : -1;
}

// The weight in `t(weight)`; None for anything else.
fx::Argument transposed_weight(const RecordedGraph& g, const fx::Argument& a) {
  const fx::Node* n = a.node_or_null();
  if (!n || !calls(*n, "aten::t") || rank(g, n->arg(0)) != 2) return {};
  return n->arg(0);
}

bool is_bias(const RecordedGraph& g, const fx::Argument& bias, const fx::Argument& weight) {
  const torch_::TensorInfo* b = g.info_of(bias);
  const torch_::TensorInfo* w = g.info_of(weight);
  return b && w && b->dtype == w->dtype && b->sizes.size() == 1 && b->sizes[0] == w->sizes[0];
}

void linear_of_addmm(RecordedGraph& g, fx::Node* n) {
  if (!plain_call(*n, 3)) return;
  const fx::Argument weight = transposed_weight(g, n->arg(2));
  if (!weight.is_none() && is_bias(g, n->arg(0), weight))
    replace_by(g, n, "aten::linear", {n->arg(1), weight, n->arg(0)});
}

void linear_of_matmul(RecordedGraph& g, fx::Node* n) {
  if (!plain_call(*n, 2) || rank(g, n->arg(0)) < 1) return;
  const fx::Argument weight = transposed_weight(g, n->arg(1));
  if (weight.is_none()) return;
  const fx::Argument x = n->arg(0);
  fx::Node* sum = n->num_users() == 1 ? n->users_vector()[0] : nullptr;
  if (sum && calls(*sum, "aten::add_") && plain_call(*sum, 2) && sum->arg(0).node_or_null() == n &&
      is_bias(g, sum->arg(1), weight)) {
    // The bias may be read behind the product: the whole goes where the sum was.
    replace_by(g, sum, "aten::linear", {x, weight, sum->arg(1)});
    g.graph->erase_node(n);
  } else {
    replace_by(g, n, "aten::linear", {x, weight});
  }
}

// ---- Attention

// What scaled_dot_product_attention takes.
struct Attention {
  fx::Argument q, k, v, mask;
  double scale = 1;
  bool keep_mask = false;  // the mask says what to leave out: it is to be inverted
};

// x * c or x / c with a number c: x, and `scale` is multiplied by the factor.
bool take_scale(fx::Argument& a, double& scale) {
  for (const char* op : {"aten::mul", "aten::div", "aten::mul_", "aten::div_"}) {
    const fx::Node* n = sole_use(a, op);
    if (!n || !plain_call(*n, 2) || !(n->arg(1).is_float() || n->arg(1).is_int())) continue;
    const double c = n->arg(1).to_double();
    scale *= std::string_view(op).starts_with("aten::mul") ? c : 1 / c;
    a = fx::Argument(n->arg(0));
    return true;
  }
  return false;
}

void take_mask(fx::Argument& a, Attention& out) {
  for (const char* op : {"aten::add", "aten::add_"}) {
    const fx::Node* n = sole_use(a, op);
    if (!n || !plain_call(*n, 2) || !n->arg(1).is_node()) continue;
    out.mask = n->arg(1);
    a = fx::Argument(n->arg(0));
    return;
  }
  for (const char* op : {"aten::masked_fill", "aten::masked_fill_"}) {
    const fx::Node* n = sole_use(a, op);
    if (!n || !plain_call(*n, 3) || !n->arg(2).is_float()) continue;
    if (n->arg(2).as_float() != -std::numeric_limits<double>::infinity()) continue;
    out.mask = n->arg(1);
    out.keep_mask = true;
    a = fx::Argument(n->arg(0));
    return;
  }
}

fx::Node* sole_product(const fx::Argument& a) {
  fx::Node* n = sole_use(a, "aten::matmul");
  if (!n) n = sole_use(a, "aten::bmm");
  return n && plain_call(*n, 2) ? n : nullptr;
}

bool is_last(const fx::Argument& dim, int64_t rank) {
  return dim.is_int() && (dim.as_int() == -1 || dim.as_int() == rank - 1);
}

// kᵀ: its last two dimensions exchanged.
fx::Argument transposed_keys(const fx::Argument& a, int64_t rank) {
  const fx::Node* n = a.node_or_null();
  if (!n || !calls(*n, "aten::transpose.int") || !n->arg(1).is_int() || !n->arg(2).is_int()) return {};
  const auto wrap = [rank](int64_t d) { return d < 0 ? d + rank : d; };
  const int64_t a0 = wrap(n->arg(1).as_int()), a1 = wrap(n->arg(2).as_int());
  return std::min(a0, a1) == rank - 2 && std::max(a0, a1) == rank - 1 ? n->arg(0) : fx::Argument();
}

// One floating type, one rank, equal batches: what the operator takes without broadcasting.
bool fit_together(const RecordedGraph& g, const Attention& a) {
  const torch_::TensorInfo *q = g.info_of(a.q), *k = g.info_of(a.k), *v = g.info_of(a.v);
  if (!q || !k || !v || !c10::isFloatingType(q->dtype) || q->dtype != k->dtype || q->dtype != v->dtype) return false;
  const size_t rank = q->sizes.size();
  if (rank < 3 || rank > 4 || k->sizes.size() != rank || v->sizes.size() != rank) return false;
  for (size_t d = 0; d + 2 < rank; ++d)
    if (q->sizes[d] != k->sizes[d] || q->sizes[d] != v->sizes[d]) return false;
  return k->sizes[rank - 2] == v->sizes[rank - 2];
}

std::optional<Attention> match_attention(const RecordedGraph& g, const fx::Node& n, bool masked) {
  Attention out;
  const int64_t r = rank(g, n.arg(0));
  fx::Argument weights = n.arg(0);
  if (const fx::Node* dropout = sole_use(weights, "aten::dropout")) {
    if (!dropout->arg(2).is_bool() || dropout->arg(2).as_bool()) return std::nullopt;
    weights = fx::Argument(dropout->arg(0));
  }
  const fx::Node* softmax = sole_use(weights, "aten::softmax.int");
  if (!softmax || !plain_call(*softmax, 2) || !is_last(softmax->arg(1), r)) return std::nullopt;
  fx::Argument scores = softmax->arg(0);
  if (masked) take_mask(scores, out);
  take_scale(scores, out.scale);
  const fx::Node* product = sole_product(scores);
  if (!product) return std::nullopt;
  out.q = product->arg(0);
  out.k = transposed_keys(product->arg(1), r);
  out.v = n.arg(1);
  take_scale(out.q, out.scale);
  if (out.k.is_none() || !fit_together(g, out)) return std::nullopt;
  return out;
}

void rewrite_attention(RecordedGraph& g, fx::Node* n, const Attention& a) {
  const auto scope = g.graph->inserting_before(n);
  fx::Argument mask = a.mask;
  if (a.keep_mask) mask = g.graph->call_function(aten("aten::logical_not"), fx::Argument::tuple({mask}));
  Args args{a.q, a.k, a.v};
  if (!mask.is_none()) args.push_back(mask);
  const fx::Argument kwargs = fx::Argument::dict({{"scale", a.scale}});
  if (rank(g, a.q) == 3) {
    replace_by(g, n, "aten::scaled_dot_product_attention", args, kwargs);
    return;
  }
  // The operator may lay out four dimensions otherwise than a product does.
  fx::Node* attention =
      g.graph->call_function(aten("aten::scaled_dot_product_attention"), fx::Argument::tuple(args), kwargs);
  replace_by(g, n, "aten::contiguous", {attention});
}

}  // namespace

void recognise_linear(RecordedGraph& g) {
  for (fx::Node* n : g.graph->nodes()) {
    if (calls(*n, "aten::addmm")) {
      linear_of_addmm(g, n);
    } else if (calls(*n, "aten::matmul")) {
      linear_of_matmul(g, n);
    }
  }
}

void recognise_attention(RecordedGraph& g, bool masked) {
  for (fx::Node* n : g.graph->nodes()) {
    if (!(calls(*n, "aten::matmul") || calls(*n, "aten::bmm")) || !plain_call(*n, 2)) continue;
    if (const auto a = match_attention(g, *n, masked)) rewrite_attention(g, n, *a);
  }
}

}  // namespace fxjit::inline v0::driver
