// Random fused groups: elementwise operators, views, row reductions and casts over random layouts, lowered to one
// kernel, compiled, and compared with eager node by node. A failure names its seed.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include "codegen/schedule.h"
#include "fxjit/fx/graph.h"
#include "jit/kernel_cache.h"
#include "kernel/lower/lower.h"
#include "ops/aten_target.h"
#include "ops/infer.h"
#include "ops/value.h"
#include "support/format.h"
#include "torch/convert.h"
#include "torch/dtype.h"
#include "torch/type_import.h"

namespace fxjit::testing {
namespace {

using fx::Argument;
using fx::Node;
using ops::Value;

class Group {
 public:
  explicit Group(unsigned seed) : random_(seed) {}

  // "" where the kernel and eager agree; `refused` is set where there is no kernel.
  std::string run(bool& refused) {
    space_ = {pick({1, 2, 3}), pick({1, 2, 4, 7}), pick({1, 3, 16, 37})};
    const int inputs = pick({1, 2, 3}), calls = pick({2, 3, 5, 8, 12});
    for (int i = 0; i < inputs; ++i) add_input();
    for (int i = 0; i < calls; ++i) add_call();
    if (group_.empty()) return "";
    choose_outputs();
    Result<kernel::Lowered> lowered = kernel::lower_group(env_, group_, outputs_);
    refused = !lowered.ok();
    if (refused) return "";
    return compare(*lowered);
  }

 private:
  int64_t pick(std::initializer_list<int64_t> from) { return from.begin()[random_() % from.size()]; }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  Node* any_value() { return values_[random_() % values_.size()]; }

  void add_input() {
    std::vector<int64_t> sizes = space_;
    for (int64_t& s : sizes) s = chance(20) ? 1 : s;
    if (chance(20)) sizes.erase(sizes.begin());
    std::vector<size_t> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (chance(25)) std::shuffle(order.begin(), order.end(), random_);
    const int64_t gap = pick({1, 1, 1, 2});
    std::vector<int64_t> strides(sizes.size());
    int64_t next = gap;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = next;
      next *= sizes[order[i]];
    }
    static constexpr DType types[] = {DType::Float32, DType::Float32, DType::Float16, DType::BFloat16,
                                      DType::Int64,   DType::Int32,   DType::Bool,    DType::UInt8};
    const DType t = types[random_() % std::size(types)];
    at::Tensor tensor = at::empty_strided(sizes, strides, at::TensorOptions().dtype(torch_::to_scalar_type(t)));
    char* data = static_cast<char*>(tensor.mutable_data_ptr());
    const int64_t span = tensor.numel() == 0 ? 0 : next - gap + 1;
    for (int64_t i = 0; i < span; ++i) {
      const double v = static_cast<double>(static_cast<int>(random_() % 49) - 24) / 8;
      ops::store(t, data + static_cast<size_t>(i) * size_of(t), ops::cast(DType::Float64, t, Value::of(v)));
    }
    Node* n = graph_->placeholder("x" + std::to_string(values_.size()));
    n->set_tensor_type(torch_::import_type(env_, tensor));
    tensors_[n] = tensor;
    values_.push_back(n);
  }

  void add_call() {
    Node* x = any_value();
    const int64_t rank = static_cast<int64_t>(x->tensor_type()->rank());
    switch (random_() % 14) {
      case 0:
        return call("aten::add.Tensor", {x, any_value(), pick({1, 1, 2})});
      case 1:
        return call("aten::mul.Tensor", {x, any_value()});
      case 2:
        return call("aten::sub.Tensor", {x, any_value(), 1});
      case 3:
        return call("aten::maximum", {x, any_value()});
      case 4:
        return call("aten::mul.Tensor", {x, 0.3});
      case 5:
        return call("aten::gt.Scalar", {x, 0.25});
      case 6:
        return call("aten::where.self", {any_value(), x, any_value()});
      case 7:
        return call("aten::to.dtype", {x, DType(pick({5, 6, 15, 4, 3})), false, false, Argument()});
      case 8:
        return call("aten::neg", {x});
      case 9:
        return call("aten::abs", {x});
      case 10:
        return rank == 3 ? call("aten::transpose.int", {x, pick({0, 1}), pick({1, 2})}) : void();
      case 11:
        return rank > 0 ? call("aten::slice.Tensor", {x, -1, pick({0, 1}), INT64_MAX, pick({1, 2})}) : void();
      case 12:
        return rank > 0 ? call(pick({0, 1}) ? "aten::amax" : "aten::sum.dim_IntList", reduce_arguments(x)) : void();
      default:
        return rank == 3 ? call("aten::reshape", {x, Argument::list({-1, sizes_of(x)[2]})}) : void();
    }
  }

  std::vector<int64_t> sizes_of(const Node* n) const { return tensors_.at(n).sizes().vec(); }

  std::vector<Argument> reduce_arguments(Node* x) { return {x, Argument::list({-1}), chance(80)}; }

  // A call that eager accepts becomes a node; others are dropped.
  void call(const char* schema, std::vector<Argument> args) {
    const std::string text(schema);
    const size_t dot = text.find('.');
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
        text.substr(0, dot).c_str(), dot == text.npos ? "" : text.substr(dot + 1).c_str());
    torch::jit::Stack stack;
    for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
      const c10::Argument& expected = op.schema().arguments()[i];
      if (i >= args.size()) args.emplace_back(torch_::to_value(*expected.default_value(), *expected.real_type()));
      const Node* n = args[i].node_or_null();
      std::optional<c10::IValue> v;
      if (n != nullptr) {
        v = tensors_.at(n);
      } else {
        v = torch_::to_ivalue(args[i], expected);
      }
      if (!v) return;
      stack.push_back(std::move(*v));
    }
    try {
      op.callBoxed(&stack);
    } catch (const std::exception&) {
      return;
    }
    const at::Tensor result = stack.at(0).toTensor();
    if (result.numel() == 0) return;
    Node* n = graph_->call_function(fx::make_ref<ops::AtenTarget>(text), Argument::tuple(args));
    n->set_tensor_type(torch_::import_type(env_, result));
    Node* const alone[] = {n};
    const bool view = result.is_alias_of(stack_input(args));
    if (!view && !kernel::lower_group(env_, alone, alone)) return;
    tensors_[n] = result;
    group_.push_back(n);
    values_.push_back(n);
    if (view) views_.push_back(n);
  }

  const at::Tensor& stack_input(const std::vector<Argument>& args) const {
    for (const Argument& a : args) {
      if (const Node* n = a.node_or_null()) return tensors_.at(n);
    }
    return tensors_.begin()->second;
  }

  // The last value that is no view, and sometimes another one; then only what they need.
  void choose_outputs() {
    for (size_t i = group_.size(); i-- > 0 && outputs_.size() < 2;) {
      Node* n = group_[i];
      const bool view = std::find(views_.begin(), views_.end(), n) != views_.end();
      if (!view && (outputs_.empty() || chance(30))) outputs_.push_back(n);
    }
    std::vector<Node*> needed;
    for (size_t i = group_.size(); i-- > 0;) {
      Node* n = group_[i];
      bool wanted = std::find(outputs_.begin(), outputs_.end(), n) != outputs_.end();
      for (Node* user : n->users_vector())
        wanted = wanted || std::find(needed.begin(), needed.end(), user) != needed.end();
      if (wanted) needed.insert(needed.begin(), n);
    }
    group_ = needed;
    if (outputs_.empty()) outputs_ = group_.empty() ? group_ : std::vector<Node*>{group_.back()};
  }

  std::string compare(const kernel::Lowered& l) {
    std::map<const Node*, at::Tensor> mine;
    for (Node* n : outputs_) {
      const at::Tensor& t = tensors_.at(n);
      mine[n] = at::empty_strided(t.sizes(), t.strides(), t.options());
    }
    std::vector<void*> pointers;
    std::vector<int64_t> extents, strides;
    std::vector<uint64_t> scalars;
    for (size_t i = 0; i < l.buffers.size(); ++i) {
      const kernel::BufferSource& b = l.buffers[i];
      const at::Tensor& t = l.kernel.buffers[i].output ? mine.at(b.node) : tensors_.at(b.node);
      pointers.push_back(static_cast<char*>(t.mutable_data_ptr()) + env_.hint(b.offset) * t.element_size());
      for (Dim s : b.strides) strides.push_back(env_.hint(s));
    }
    for (Dim e : l.extents) extents.push_back(env_.hint(e));
    for (const kernel::ScalarSource& s : l.scalars) scalars.push_back(s.bits);
    const codegen::Schedule schedule = codegen::choose_schedule(l.kernel);
    const auto handle = jit::get_kernel(l.kernel, schedule, Options());
    if (!handle) return handle.reason();
    fxjit_launch launch{pointers.data(),
                        extents.data(),
                        strides.data(),
                        scalars.data(),
                        codegen::blocks_per_outer(l.kernel, schedule, extents.data()),
                        FXJIT_OK};
    handle->function(0, codegen::unit_count(l.kernel, schedule, extents.data()), &launch);
    for (Node* n : outputs_) {
      const std::string wrong = difference(*n, mine.at(n), l.kernel);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  // Sums are exact here but for the order of half types' roundings in eager; everything else is bit-equal.
  std::string difference(const Node& n, const at::Tensor& mine, const kernel::Kernel& k) const {
    const DType t = n.tensor_type()->dtype;
    const at::Tensor want = tensors_.at(&n).contiguous(), got = mine.contiguous();
    const bool summed = std::any_of(k.exprs.begin(), k.exprs.end(), [](const kernel::Expr& e) {
      return (e.kind == kernel::ExprKind::Reduce && e.reduce == kernel::ReduceOp::Sum) ||
             (e.kind == kernel::ExprKind::Op && e.op == ops::OpId::muladd);
    });
    for (int64_t i = 0; i < want.numel(); ++i) {
      const int64_t at = i * static_cast<int64_t>(size_of(t));
      const Value a = ops::load(t, static_cast<const char*>(got.const_data_ptr()) + at);
      const Value b = ops::load(t, static_cast<const char*>(want.const_data_ptr()) + at);
      if (a == b || (is_floating(t) && (a.f() == b.f() || (a.f() != a.f() && b.f() != b.f())))) continue;
      if (is_floating(t) && summed && std::fabs(a.f() - b.f()) <= 0.02 * std::max(1.0, std::fabs(b.f()))) continue;
      return support::concat("%", n.name(), " element ", i, " is ", is_floating(t) ? a.f() : static_cast<double>(a.i()),
                             ", eager's ", is_floating(t) ? b.f() : static_cast<double>(b.i()), "\n",
                             graph_->to_string(), "\n", kernel::print(k));
    }
    return "";
  }

  std::mt19937 random_;
  std::vector<int64_t> space_;
  ShapeEnv env_;
  fx::GraphPtr graph_ = fx::Graph::create();
  std::map<const Node*, at::Tensor> tensors_;
  std::vector<Node*> values_, group_, outputs_, views_;
};

TEST(Groups, RandomGroupsAgreeWithEager) {
  const char* asked = std::getenv("FXJIT_TEST_SEEDS");  // "first count"
  unsigned first = 1, count = 400;
  if (asked != nullptr) {
    ASSERT_EQ(std::sscanf(asked, "%u %u", &first, &count), 2);
  }
  int kernels = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    Group group(seed);
    bool refused = false;
    const std::string wrong = group.run(refused);
    ASSERT_EQ(wrong, "") << "seed " << seed;
    kernels += !refused;
  }
  std::cout << kernels << " kernels of " << count << " groups\n";
  EXPECT_GT(kernels, static_cast<int>(count / 3));
}

}  // namespace
}  // namespace fxjit::testing
