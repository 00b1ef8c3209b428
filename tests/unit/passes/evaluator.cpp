#include "evaluator.h"

#include <cmath>
#include <limits>
#include <map>

#include "kernel/kernel_call.h"
#include "kernel/lower/lower.h"
#include "memory.h"
#include "ops/registry.h"
#include "ops/shape.h"
#include "passes/alias.h"
#include "passes/canonicalize.h"
#include "passes/functionalize.h"
#include "support/errors.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;
using kernel::KernelCall;

class Evaluator {
 public:
  Evaluator(fx::Graph& graph, ShapeEnv& env) : graph_(graph), env_(env) {}

  Outcome run(const Inputs& inputs);

 private:
  struct Slot {
    std::vector<Tensor> parts;  // one, or those of a tuple
  };
  const Tensor& value(const Argument& a) { return slots_.at(a.as_node()).parts.at(0); }

  void call(Node* n);
  void run_kernel(Node* n, const KernelCall& k);
  Tensor run_alone(Node* n);
  Tensor view(Node* n, ops::ViewRule rule);
  Tensor reduction(Node* n, ops::ReduceId id);
  void run_in_place(Node* n);
  bool run_composite(Node* n);
  Tensor made(Node* n, const std::vector<double>& values);

  fx::Graph& graph_;
  ShapeEnv& env_;
  std::map<const Node*, Slot> slots_;
  Outcome outcome_;
  int random_ = 0;
};

Tensor Evaluator::made(Node* n, const std::vector<double>& values) {
  Tensor t = allocate(env_, n->tensor_type());
  write(env_, t, values);
  return t;
}

void launch(const ShapeEnv& env, const kernel::Kernel& k, std::vector<void*> pointers, const std::vector<Dim>& extents,
            const std::vector<std::vector<Dim>>& strides, const std::vector<uint64_t>& scalars) {
  std::vector<int64_t> flat;
  for (const auto& s : strides)
    for (Dim d : s) flat.push_back(env.hint(d));
  kernel::interpret(k, pointers.data(), hints(env, extents).data(), flat.data(), scalars.data());
}

Tensor Evaluator::run_alone(Node* n) {
  Node* const nodes[] = {n};
  Result<kernel::Lowered> l = kernel::lower_group(env_, nodes, nodes);
  FXJIT_CHECK(l.ok(), "the evaluator has no meaning for ", n->format_node(), ": ", l.ok() ? "" : l.reason());
  Tensor out = allocate(env_, n->tensor_type());
  std::vector<void*> pointers;
  std::vector<std::vector<Dim>> strides;
  std::vector<uint64_t> scalars;
  for (size_t i = 0; i < l->buffers.size(); ++i) {
    const kernel::BufferSource& b = l->buffers[i];
    const Tensor& t = l->kernel.buffers[i].output ? out : slots_.at(b.node).parts.at(0);
    pointers.push_back(t.memory->data() +
                       (t.offset + env_.hint(b.offset)) * static_cast<int64_t>(size_of(t.type->dtype)));
    strides.push_back(b.strides);
  }
  for (const kernel::ScalarSource& s : l->scalars) scalars.push_back(s.bits);
  launch(env_, l->kernel, pointers, l->extents, strides, scalars);
  return out;
}

void Evaluator::run_kernel(Node* n, const KernelCall& k) {
  Slot slot;
  for (const TensorTypePtr& t : k.results) slot.parts.push_back(allocate(env_, t));
  std::vector<void*> pointers;
  std::vector<std::vector<Dim>> strides;
  std::vector<uint64_t> scalars;
  for (const kernel::BufferBinding& b : k.buffers) {
    const Tensor& t = b.result >= 0 ? slot.parts[b.result] : value(n->arg(b.operand));
    int64_t offset = b.offset.id < 0 ? 0 : env_.hint(b.offset);
    pointers.push_back(t.memory->data() + (t.offset + offset) * static_cast<int64_t>(size_of(t.type->dtype)));
    strides.push_back(b.strides);
  }
  for (const kernel::ScalarBinding& s : k.scalars)
    scalars.push_back(s.kind == kernel::ScalarBinding::Size ? static_cast<uint64_t>(env_.hint(s.size)) : s.bits);
  launch(env_, k.kernel, pointers, k.extents, strides, scalars);
  slots_[n] = std::move(slot);
}

Tensor Evaluator::view(Node* n, ops::ViewRule rule) {
  const Tensor& x = value(n->arg(0));
  Tensor out{n->tensor_type(), x.memory, x.offset};
  auto position = [&](size_t i, size_t dim) {
    int64_t at = n->arg(i).is_none() ? 0 : n->arg(i).as_int(), size = env_.hint(x.type->sizes[dim]);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size) * env_.hint(x.type->strides[dim]);
  };
  if (rule == ops::ViewRule::select || rule == ops::ViewRule::slice) {
    int64_t dim = n->arg(1).as_int();
    out.offset += position(2, static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(x.type->rank()) : dim));
  }
  bool copies =
      rule == ops::ViewRule::reshape && !ops::view(env_, ops::layout_of(*x.type), n->tensor_type()->sizes).ok();
  return copies ? made(n, read(env_, x)) : out;
}

// Sums, means and maxima in double, over dimensions given as a list.
Tensor Evaluator::reduction(Node* n, ops::ReduceId id) {
  const Tensor& x = value(n->arg(0));
  std::vector<int64_t> sizes = hints(env_, x.type->sizes);
  std::vector<bool> reduced(sizes.size(), n->arg(1).size() == 0);
  for (const Argument& d : n->arg(1).items())
    reduced[static_cast<size_t>(d.as_int() < 0 ? d.as_int() + static_cast<int64_t>(sizes.size()) : d.as_int())] = true;
  int64_t results = 1, count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) (reduced[d] ? count : results) *= sizes[d];
  const bool largest = id == ops::ReduceId::amax;
  std::vector<double> v = read(env_, x);
  std::vector<double> out(static_cast<size_t>(results), largest ? -std::numeric_limits<double>::infinity() : 0);
  for (size_t i = 0; i < v.size(); ++i) {
    size_t rest = i, place = 0, step = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      size_t at = rest % static_cast<size_t>(sizes[d]);
      rest /= static_cast<size_t>(sizes[d]);
      if (reduced[d]) continue;
      place += at * step;
      step *= static_cast<size_t>(sizes[d]);
    }
    double& o = out[place];
    if (largest) {
      if (std::isnan(v[i]) || v[i] > o) o = std::isnan(o) ? o : v[i];
    } else {
      o += id == ops::ReduceId::mean ? v[i] / static_cast<double>(count) : v[i];
    }
  }
  return made(n, out);
}

// By the pure form on a graph of its own, cast and written to self.
void Evaluator::run_in_place(Node* n) {
  const Tensor& self = value(n->arg(0));
  outcome_.effects.emplace_back(n->callable().qualified_name());
  std::string schema(schema_of(*n));
  std::vector<Argument> args(n->args().items().begin(), n->args().items().end());
  if (schema == "aten::copy_") {
    schema = "aten::to.dtype";
    args = {args[1], self.type->dtype, false, true, Argument()};
    if (value(args[0]).type->sizes != self.type->sizes) {
      args[0] = Argument();  // through an expand
      schema = "aten::add.Tensor";
      args = {n->arg(0), n->arg(1), 1};
      std::vector<double> zeros(read(env_, self).size(), 0.0);
      write(env_, self, zeros);
    }
  } else if (schema == "aten::zero_") {
    schema = "aten::fill.Scalar";
    args = {args[0], 0};
  } else {
    schema = functional_form(schema);
  }
  fx::GraphPtr scratch = fx::Graph::create();
  TypedBuilder build(*scratch, env_);
  std::map<Node*, Node*> inputs;
  Inputs values;
  for (Argument& a : args) {
    if (!a.is_node()) continue;
    Node*& in = inputs[a.as_node()];
    if (!in) {
      in = scratch->placeholder("a");
      in->set_tensor_type(a.as_node()->tensor_type());
      values.push_back(value(a));
    }
    a = in;
  }
  Node* result = build.cast(build.call(schema, args), self.type->dtype);
  scratch->output(result);
  Outcome made = Evaluator(*scratch, env_).run(values);
  write(env_, self, read(env_, made.results[0]));
  slots_[n] = {{self}};
}

// Means, exponentials and the like in double, along the last dimensions.
bool Evaluator::run_composite(Node* n) {
  std::string_view schema = schema_of(*n);
  bool soft = schema == "aten::softmax.int" || schema == "aten::_softmax";
  bool log_soft = schema == "aten::log_softmax.int" || schema == "aten::_log_softmax";
  bool norm = schema == "aten::layer_norm" || schema == "aten::native_layer_norm";
  if (!soft && !log_soft && !norm && schema != "aten::batch_norm") return false;
  const Tensor& x = value(n->arg(0));
  std::vector<double> v = read(env_, x), means, scales;
  auto parameter = [&](size_t i) { return n->arg(i).is_node() ? read(env_, value(n->arg(i))) : std::vector<double>(); };
  if (schema == "aten::batch_norm") {
    std::vector<double> w = parameter(1), b = parameter(2), mean = parameter(3), var = parameter(4);
    size_t channels = mean.size(), inner = 1;
    for (size_t d = 2; d < x.type->rank(); ++d) inner *= static_cast<size_t>(env_.hint(x.type->sizes[d]));
    for (size_t i = 0; i < v.size(); ++i) {
      size_t c = i / inner % channels;
      double y = (v[i] - mean[c]) / std::sqrt(var[c] + n->arg(7).as_float());
      v[i] = (w.empty() ? y : y * w[c]) + (b.empty() ? 0 : b[c]);
    }
    slots_[n] = {{made(n, v)}};
    return true;
  }
  size_t row = 1, dims = norm ? n->arg(1).size() : 1;
  for (size_t d = x.type->rank() - dims; d < x.type->rank(); ++d)
    row *= static_cast<size_t>(env_.hint(x.type->sizes[d]));
  std::vector<double> w = norm ? parameter(2) : means, b = norm ? parameter(3) : means;
  for (size_t r = 0; r < v.size(); r += row) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, mean = 0, var = 0;
    for (size_t i = 0; i < row; ++i) largest = std::isnan(v[r + i]) || v[r + i] > largest ? v[r + i] : largest;
    for (size_t i = 0; i < row; ++i) mean += v[r + i] / static_cast<double>(row), sum += std::exp(v[r + i] - largest);
    for (size_t i = 0; i < row; ++i) var += (v[r + i] - mean) * (v[r + i] - mean) / static_cast<double>(row);
    double scale = norm ? 1 / std::sqrt(var + n->arg(4).as_float()) : 0;
    for (size_t i = 0; i < row; ++i) {
      double& e = v[r + i];
      if (soft) e = std::exp(e - largest) / sum;
      if (log_soft) e = e - largest - std::log(sum);
      if (norm) e = (e - mean) * scale * (w.empty() ? 1 : w[i]) + (b.empty() ? 0 : b[i]);
    }
    means.push_back(mean);
    scales.push_back(scale);
  }
  if (schema != "aten::native_layer_norm") {
    slots_[n] = {{made(n, v)}};
    return true;
  }
  Slot slot{std::vector<Tensor>(3)};
  for (Node* part : n->users()) {
    int64_t i = part->arg(1).as_int();
    slot.parts[static_cast<size_t>(i)] = made(part, i == 0 ? v : i == 1 ? means : scales);
  }
  slots_[n] = slot;
  return true;
}

void Evaluator::call(Node* n) {
  std::string_view schema = schema_of(*n);
  if (const auto* k = dynamic_cast<const KernelCall*>(&n->callable())) return run_kernel(n, *k);
  if (schema == "_operator.getitem") {
    slots_[n] = {{slots_.at(n->arg(0).as_node()).parts.at(static_cast<size_t>(n->arg(1).as_int()))}};
    return;
  }
  if (is_inplace(schema)) return run_in_place(n);
  if (schema == "aten::opaque_negation" || schema == "test::effect") {
    std::vector<double> v = read(env_, value(n->arg(0)));
    for (double& e : v) e = -e;
    if (schema == "test::effect") outcome_.effects.emplace_back(n->name());
    slots_[n] = {{made(n, v)}};
    return;
  }
  if (schema == "aten::flip") {  // of all dimensions
    std::vector<double> v = read(env_, value(n->arg(0)));
    slots_[n] = {{made(n, {v.rbegin(), v.rend()})}};
    return;
  }
  if (schema == "aten::rand_like") {  // a counter: the order of the calls shows in the numbers
    std::vector<double> v(read(env_, value(n->arg(0))).size(), ++random_);
    slots_[n] = {{made(n, v)}};
    outcome_.effects.emplace_back(schema);
    return;
  }
  if (run_composite(n)) return;
  const Tensor& x = value(n->arg(0));
  if (returns_operand(*n, *x.type, env_)) {
    slots_[n] = {{x}};
  } else if (schema == "aten::detach" || schema == "aten::alias") {
    slots_[n] = {{Tensor{n->tensor_type(), x.memory, x.offset}}};
  } else if (auto entry = ops::find_schema(schema); entry && entry->kind == ops::OpClass::View) {
    slots_[n] = {{view(n, entry->view())}};
  } else if (entry && entry->kind == ops::OpClass::Reduce) {
    slots_[n] = {{reduction(n, entry->reduce())}};
  } else {
    slots_[n] = {{run_alone(n)}};
  }
}

Outcome Evaluator::run(const Inputs& inputs) {
  size_t next = 0;
  for (Node* n : graph_.nodes()) {
    if (n->op() == fx::Opcode::Placeholder) {
      slots_[n] = {{inputs.at(next++)}};
    } else if (n->op() == fx::Opcode::CallFunction) {
      call(n);
    } else if (n->op() == fx::Opcode::Output) {
      fx::for_each_node(n->args(), [&](Node* r) { outcome_.results.push_back(slots_.at(r).parts.at(0)); });
    }
  }
  return std::move(outcome_);
}

}  // namespace

Outcome evaluate(Program& p, const Inputs& inputs) { return Evaluator(*p.graph, p.env).run(inputs); }

}  // namespace fxjit::inline v0::passes
