#include "eager_harness.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fxjit/fx/graph.h"
#include "kernel/lower/lower.h"
#include "ops/aten_target.h"
#include "ops/infer.h"
#include "ops/value.h"
#include "support/format.h"
#include "torch/convert.h"
#include "torch/dtype.h"
#include "torch/type_import.h"

namespace fxjit::testing {

using fx::Argument;
using ops::Value;
using support::concat;

namespace {

using Sizes = std::vector<int64_t>;

// Small values without specials, so that no order of operators overflows: eighths from -4 to 4, or integers.
at::Tensor make(DType t, const Sizes& sizes, Sizes strides, int seed) {
  if (strides.empty()) {
    strides.assign(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  }
  at::Tensor out = at::empty_strided(sizes, strides, at::TensorOptions().dtype(torch_::to_scalar_type(t)));
  char* data = static_cast<char*>(out.mutable_data_ptr());
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t k = (i * 23 + seed * 7) % 65 - 32;
    const Value v = is_floating(t)      ? Value::of(static_cast<double>(k) / 8)
                    : kind_of(t) == 'u' ? Value::of((k + 32) % 11)
                    : t == DType::Bool  ? Value::of(k % 3 == 0 ? int64_t{1} : 0)
                                        : Value::of(k / 4);
    ops::store(t, data + static_cast<size_t>(i) * size_of(t), v);
  }
  return out;
}

std::optional<DType> type_word(std::string_view word) {
#define FXJIT_DTYPE(name, value, text, bytes, kind) \
  if (word == text) return DType::name;
  FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  return std::nullopt;
}

class Call {
 public:
  Call(const CallText& text, DType t) : text_(text), type_(t) {}

  Outcome run() {
    for (std::string_view word : support::split(text_.arguments, ' '))
      arguments_.push_back(argument(std::string(word)));
    const bool raises = !eager();
    node_ = graph_->call_function(fx::make_ref<ops::AtenTarget>(text_.schema), Argument::tuple(arguments_));
    Result<TensorTypePtr> type = ops::infer_type(env_, *node_);
    if (!type) return {raises ? Outcome::BothRefuse : Outcome::Disagreed, "type rule: " + type.reason()};
    node_->set_tensor_type(*type);
    if (!raises) {
      if (const std::string wrong = compare_type(**type); !wrong.empty()) return {Outcome::Disagreed, wrong};
    }
    fx::Node* const nodes[] = {node_};
    Result<kernel::Lowered> lowered = kernel::lower_group(env_, nodes, nodes);
    if (raises) {
      return {lowered ? Outcome::Disagreed : Outcome::BothRefuse,
              lowered ? "eager raises: " + error_ : lowered.reason()};
    }
    if (!lowered) return {Outcome::LeftToAten, lowered.reason()};
    const std::string wrong = compare_values(*lowered);
    return {wrong.empty() ? Outcome::Agreed : Outcome::Disagreed, wrong};
  }

 private:
  Argument tensor(const at::Tensor& t) {
    fx::Node* n = graph_->placeholder("t" + std::to_string(tensors_.size()));
    n->set_tensor_type(torch_::import_type(env_, t));
    tensors_.emplace(n, t);
    return n;
  }

  Argument argument(const std::string& w) {
    const Sizes plane = {3, 5}, solid = {2, 3, 4, 5};
    if (w == "x") return tensor(make(type_, plane, {}, 1));
    if (w == "y") return tensor(make(type_, plane, {}, 2));
    if (w == "w") return tensor(make(type_, plane, {}, 5));
    if (w == "xt") return tensor(make(type_, plane, {1, 3}, 1));
    if (w == "row") return tensor(make(type_, {5}, {}, 3));
    if (w == "col") return tensor(make(type_, {3, 1}, {}, 4));
    if (w == "big") return tensor(make(type_, solid, {}, 1));
    if (w == "cl") return tensor(make(type_, solid, {60, 1, 15, 3}, 1));
    if (w == "z") return tensor(make(DType::Float64, {}, {}, 6));
    if (w == "zi") return tensor(make(DType::Int64, {}, {}, 3));
    if (w == "zh") return tensor(make(DType::Float16, {}, {}, 8));
    if (w == "m") return tensor(make(DType::Bool, plane, {}, 1));
    if (w == "mrow") return tensor(make(DType::Bool, {5}, {}, 2));
    if (w == "h") return tensor(make(DType::Float16, plane, {}, 7));
    if (w == "d") return tensor(make(DType::Float64, plane, {}, 8));
    if (w == "i") return tensor(make(DType::Int32, plane, {}, 9));
    return constant(w);
  }

  static Argument constant(const std::string& w) {
    if (w == "None") return {};
    if (w == "true" || w == "false") return w == "true";
    if (w == "cpu") return fx::Device{0, -1};
    if (w == "preserve") return fx::MemoryFormat::Preserve;
    if (w == "contiguous") return fx::MemoryFormat::Contiguous;
    if (w[0] == '\'') return std::string_view(w).substr(1, w.size() - 2);
    if (auto t = type_word(w)) return *t;
    if (w[0] == '[') {
      std::vector<Argument> items;
      for (std::string_view item : support::split(std::string_view(w).substr(1, w.size() - 2), ',')) {
        items.push_back(constant(std::string(item)));
      }
      return Argument::list(items);
    }
    if (w.find_first_of(".e") != w.npos) return std::stod(w);
    return static_cast<int64_t>(std::stoll(w));
  }

  // False where eager raises.
  bool eager() {
    const size_t dot = text_.schema.find('.');
    const std::string name = text_.schema.substr(0, dot),
                      overload = dot == text_.schema.npos ? "" : text_.schema.substr(dot + 1);
    const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
    torch::jit::Stack stack;
    for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
      const c10::Argument& expected = op.schema().arguments()[i];
      if (i >= arguments_.size()) {
        stack.push_back(expected.default_value().value_or(c10::IValue()));
        arguments_.push_back(torch_::to_value(stack.back(), *expected.real_type()));
        continue;
      }
      const fx::Node* n = arguments_[i].node_or_null();
      std::optional<c10::IValue> v;
      if (n != nullptr) {
        v = tensors_.at(n);
      } else {
        v = torch_::to_ivalue(arguments_[i], expected);
      }
      if (!v) throw std::runtime_error(concat("argument ", i, " of ", text_.schema, " does not fit"));
      stack.push_back(std::move(*v));
    }
    try {
      op.callBoxed(&stack);
    } catch (const std::exception& e) {  // c10::Error, or what Scalar's conversions throw
      error_ = std::string(e.what()).substr(0, 100);
      return false;
    }
    result_ = stack.at(0).toTensor();
    return true;
  }

  std::string compare_type(const TensorType& got) {
    TensorTypePtr want = torch_::import_type(env_, result_);
    if (got.dtype == want->dtype && got.sizes == want->sizes && got.strides == want->strides) return "";
    return concat("the type is ", to_string(env_, got), ", eager's ", to_string(env_, *want));
  }

  // In units of the last place of a result of at least `least`. Eager computes functions with last bits of its own, and
  // a sum with alpha with one rounding in its vector code, with two in loops over short or strided rows.
  struct Allowed {
    double ulps = 0, least = 0x1p-14;
  };

  static Allowed allowed(const kernel::Kernel& k) {
    Allowed out;
    for (const kernel::Expr& e : k.exprs) {
      // Eager rounds the product of half types after each factor.
      if (e.kind == kernel::ExprKind::Reduce)
        out.ulps = std::max(out.ulps, e.reduce == kernel::ReduceOp::Prod ? 8.0 : 2.0);
      if (e.kind != kernel::ExprKind::Op) continue;
      const ops::TypeSet domain = ops::row(e.op).domain;
      const bool function = (domain & ops::bit(DType::Float32)) && !(domain & ops::bit(DType::Float64));
      if (function || e.op == ops::OpId::sqrt || e.op == ops::OpId::rsqrt) out.ulps = 4;
      if (e.op == ops::OpId::muladd) out = {std::max(out.ulps, 1.0), 1};
      if (e.op == ops::OpId::gelu || e.op == ops::OpId::gelu_tanh) out.least = 2;  // 1 + erf(x) cancels
    }
    return out;
  }

  static bool close(DType t, Value got, Value want, const Allowed& allowed) {
    if (got == want) return true;
    if (!is_floating(t)) return false;
    const double a = got.f(), b = want.f();
    if (b != b || a == b) return a != a || a == b;
    if (!std::isfinite(a) || !std::isfinite(b)) return false;
    const int bits = t == DType::Float16 ? 11 : t == DType::BFloat16 ? 8 : t == DType::Float32 ? 24 : 53;
    const double scale = std::max(std::fabs(b), allowed.least);
    return std::fabs(a - b) <=
           (is_half(t) && allowed.ulps < 8 ? std::min(allowed.ulps, 1.0) : allowed.ulps) * std::ldexp(scale, 1 - bits);
  }

  std::string compare_values(const kernel::Lowered& l) {
    at::Tensor mine = at::empty_strided(result_.sizes(), result_.strides(), result_.options());
    std::vector<void*> pointers;
    std::vector<int64_t> extents, strides;
    std::vector<uint64_t> scalars;
    for (size_t i = 0; i < l.buffers.size(); ++i) {
      const kernel::BufferSource& b = l.buffers[i];
      const at::Tensor& t = b.node == node_ ? mine : tensors_.at(b.node);
      pointers.push_back(static_cast<char*>(t.mutable_data_ptr()) + env_.hint(b.offset) * t.element_size());
      for (Dim s : b.strides) strides.push_back(env_.hint(s));
    }
    for (Dim e : l.extents) extents.push_back(env_.hint(e));
    for (const kernel::ScalarSource& s : l.scalars) scalars.push_back(s.bits);
    kernel::interpret(l.kernel, pointers.data(), extents.data(), strides.data(), scalars.data());
    return difference(mine, allowed(l.kernel), l.kernel);
  }

  std::string difference(const at::Tensor& mine, const Allowed& allowed, const kernel::Kernel& k) const {
    const DType t = node_->tensor_type()->dtype;
    const at::Tensor want = result_.contiguous(), got = mine.contiguous();
    for (int64_t i = 0; i < want.numel(); ++i) {
      const int64_t at = i * static_cast<int64_t>(size_of(t));
      const Value a = ops::load(t, static_cast<const char*>(got.const_data_ptr()) + at);
      const Value b = ops::load(t, static_cast<const char*>(want.const_data_ptr()) + at);
      if (close(t, a, b, allowed)) continue;
      auto show = [&](Value v) { return is_floating(t) ? support::python_float(v.f()) : std::to_string(v.i()); };
      return concat("element ", i, " is ", show(a), ", eager's ", show(b), "\n", kernel::print(k));
    }
    return "";
  }

  const CallText& text_;
  const DType type_;
  ShapeEnv env_;
  fx::GraphPtr graph_ = fx::Graph::create();
  std::vector<Argument> arguments_;
  std::map<const fx::Node*, at::Tensor> tensors_;
  fx::Node* node_ = nullptr;
  at::Tensor result_;
  std::string error_;
};

}  // namespace

Outcome try_call(const CallText& call, DType t) { return Call(call, t).run(); }

}  // namespace fxjit::testing
