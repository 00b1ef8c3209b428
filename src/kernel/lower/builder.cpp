#include "kernel/lower/builder.h"

#include <cmath>

#include "kernel/text.h"
#include "ops/number.h"
#include "ops/registry.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {

using ops::OpId;
using ops::Value;
using support::concat;

Builder::Builder(ShapeEnv& env, std::span<fx::Node* const> nodes, Space space, const LowerOptions& options)
    : env_(env), space_(std::move(space)), options_(options), group_(nodes.begin(), nodes.end()) {}

int Builder::fail(const std::string& reason) {
  if (!failure_) failure_ = reason;
  return -1;
}

// ---- values of nodes ----

std::vector<int32_t> Builder::key(const fx::Node* node, const Index& index) const {
  std::vector<int32_t> k{static_cast<int32_t>(node->id())};
  for (const Coord& c : index) {
    k.push_back(c.constant.id);
    for (const Term& t : c.terms) k.insert(k.end(), {-2 - t.axis, t.coefficient.id});
  }
  return k;
}

int Builder::value(fx::Node* node, const Index& index) {
  if (failure_) return -1;
  if (!group_.contains(node)) return load(node, index);
  const std::vector<int32_t> place = key(node, index);
  if (auto it = known_.find(place); it != known_.end()) return it->second;
  const Call call{node, aten_schema(*node), *node->tensor_type(), index};
  const std::optional<ops::SchemaEntry> entry = ops::find_schema(call.schema);
  if (!entry) return fail(concat(call.schema, " has no row in the operator tables"));
  int id = -1;
  switch (entry->kind) {
    case ops::OpClass::Elementwise:
      id = lower_elementwise(*this, call, ops::row(entry->op()));
      break;
    case ops::OpClass::Special:
      id = lower_special(*this, call, entry->index);
      break;
    case ops::OpClass::Reduce:
      id = lower_reduce(*this, call, entry->index);
      break;
    case ops::OpClass::View:
      id = lower_view(*this, call, entry->index);
      break;
    case ops::OpClass::Library:
      return fail(concat(call.schema, " is a library call"));
  }
  if (id < 0) return fail(concat(call.schema, " cannot be lowered"));
  if (type(id) != call.type.dtype) {
    return fail(concat(call.schema, " gives ", to_text(type(id)), " here, its node says ", to_text(call.type.dtype)));
  }
  known_.emplace(place, id);
  return id;
}

int Builder::add_buffer(fx::Node* node, const Index& index, bool output) {
  const TensorType& t = *node->tensor_type();
  BufferSource source{node, env_.constant(0), std::vector<Dim>(space_.extents.size(), env_.constant(0))};
  for (size_t d = 0; d < index.size(); ++d) {
    source.offset = env_.add(source.offset, env_.mul(index[d].constant, t.strides[d]));
    for (const Term& term : index[d].terms) {
      Dim& stride = source.strides[static_cast<size_t>(term.axis)];
      stride = env_.add(stride, env_.mul(term.coefficient, t.strides[d]));
    }
  }
  std::vector<int32_t> place{static_cast<int32_t>(node->id()), source.offset.id};
  for (Dim s : source.strides) place.push_back(s.id);
  if (!output) {
    if (auto it = known_buffers_.find(place); it != known_buffers_.end()) return it->second;
  }
  const int number = static_cast<int>(buffers_.size());
  if (!output) known_buffers_.emplace(std::move(place), number);
  Buffer b;
  b.dtype = t.dtype;
  b.output = output;
  kernel_.buffers.push_back(b);
  buffers_.push_back(std::move(source));
  return number;
}

int Builder::load(fx::Node* node, const Index& index) {
  if (kind_of(node->tensor_type()->dtype) == 'c') return fail("complex numbers have no kernels");
  Expr e;
  e.kind = ExprKind::Load;
  e.dtype = node->tensor_type()->dtype;
  e.index = add_buffer(node, index, false);
  return append(e);
}

void Builder::store(fx::Node* node, const Index& index) {
  const int id = value(node, index);
  if (id < 0) return;
  const int buffer = add_buffer(node, index, true);
  for (size_t a = 0; a < space_.extents.size(); ++a) {
    if (space_.reduced[a] || !env_.is_const(buffers_.back().strides[a], 0)) continue;
    fail(concat(node->name(), " has elements that share memory"));
    return;
  }
  kernel_.stores.push_back({buffer, id});
}

// ---- arguments ----

fx::Argument Builder::argument(const Call& c, size_t i, std::string_view name) const {
  if (i < c.node->args().size()) return c.node->arg(i);
  if (!name.empty()) {
    if (const fx::Argument* a = c.node->kwargs().is_none() ? nullptr : c.node->kwargs().find(name)) return *a;
  }
  return {};
}

Operand Builder::operand(const fx::Argument& a) {
  using Kind = fx::Argument::Kind;
  Operand o;
  if (a.is(Kind::Node)) {
    o.node = a.as_node();
    if (o.is_tensor()) o.dtype = o.node->tensor_type()->dtype;
    if (o.is_tensor()) return o;
    if (const auto number = ops::host_number(*o.node)) {
      o.dtype = number->dtype;
    } else {
      fail(concat("the value of ", o.node->name(), " is not known to be a tensor"));
    }
  } else if (a.is(Kind::Float)) {
    o.dtype = DType::Float64;
    o.number = Value::of(a.as_float());
  } else if (a.is(Kind::Int)) {
    o.number = Value::of(a.as_int());
  } else if (a.is(Kind::Bool)) {
    o.dtype = DType::Bool;
    o.number = Value::of(int64_t{a.as_bool()});
  } else {
    fail(concat("an operand is ", a.type_name()));
  }
  return o;
}

ops::OperandType Builder::operand_type(const Operand& o) const {
  if (o.is_tensor()) return ops::operand_type(*o.node->tensor_type());
  return {ops::OperandType::Wrapped, o.dtype};
}

int Builder::element(const Call& c, const Operand& o, DType t) {
  if (failure_) return -1;
  if (o.is_number()) return number(o, t);
  return cast(value(o.node, broadcast_index(env_, o.node->tensor_type()->sizes, c.type.sizes, c.index)), t);
}

namespace {

// Whether a number of the host fits into `t` whatever its value. Floats are guarded to be in
// bfloat16's range, or infinite.
bool holds_every(DType t, DType number) {
  if (t == DType::Float64 || t == DType::Float32 || t == DType::BFloat16) return true;
  return t == DType::Int64 && number == DType::Int64;
}

}  // namespace

int Builder::parameter(const Call& c, const Operand& o, DType t) {
  if (failure_) return -1;
  if (!o.is_number()) return fail(concat(c.schema, ": a parameter is a tensor"));
  if (o.is_literal()) {
    // c10's Scalar::to<T>: infinities pass, finite numbers beyond the largest do not, even where they would round to
    // it; integers are to be held as they are.
    const double v = o.as_double();
    const bool fits = is_floating(t) ? !std::isfinite(v) || std::fabs(v) <= ops::largest(t)
                                     : ops::cast(t, o.dtype, ops::cast(o.dtype, t, o.number)) == o.number;
    if (!fits) return fail(concat(c.schema, ": a number that ", to_text(t), " cannot hold"));
  } else if (!holds_every(t, o.dtype)) {
    return fail(concat(c.schema, ": a number that ", to_text(t), " may not hold"));
  }
  return number(o, t);
}

// ---- expressions ----

int Builder::append(const Expr& e) {
  if (failure_) return -1;
  if (kernel_.exprs.size() >= options_.max_exprs) return fail("the group has too many expressions for one kernel");
  kernel_.exprs.push_back(e);
  return static_cast<int>(kernel_.exprs.size()) - 1;
}

int Builder::op(OpId id, std::initializer_list<int> args) {
  const ops::OpRow& row = ops::row(id);
  FXJIT_CHECK(args.size() == row.arity, row.name, " takes ", int{row.arity}, " operands");
  Expr e;
  e.kind = ExprKind::Op;
  e.op = id;
  for (size_t a = 0; a < args.size(); ++a) {
    e.args[a] = args.begin()[a];
    if (e.args[a] < 0) return -1;
  }
  const DType t = type(e.args[row.promote == ops::Promote::Where ? 1 : 0]);
  if (!ops::compiles(id, t)) return fail(concat(row.name, " has no code for ", to_text(t)));
  e.dtype = ops::returns_bool(row.promote) ? DType::Bool : t;
  return append(e);
}

int Builder::cast(int id, DType to) {
  if (id < 0 || type(id) == to) return id;
  if (kind_of(to) == 'c') return fail("complex numbers have no kernels");
  Expr e;
  e.kind = ExprKind::Cast;
  e.dtype = to;
  e.args[0] = id;
  return append(e);
}

int Builder::constant(DType t, double v) {
  Expr e;
  e.kind = ExprKind::Const;
  e.dtype = t;
  e.bits = ops::cast(DType::Float64, t, Value::of(v)).bits;
  return append(e);
}

// The numbers that programs share are part of the kernel; others are arguments, so that x * 3 and x * 7 are one kernel.
int Builder::number(const Operand& o, DType t) {
  if (failure_) return -1;
  if (!o.is_literal()) return add_scalar(o.dtype, {ScalarSource::Host, 0, {}, o.node}, t);
  const double v = o.as_double();
  for (double shared : {0.0, 1.0, -1.0, 0.5, 2.0}) {
    if (Value::of(v) == Value::of(shared)) {
      Expr e;
      e.kind = ExprKind::Const;
      e.dtype = t;
      e.bits = ops::cast(o.dtype, t, o.number).bits;
      return append(e);
    }
  }
  const DType kind = is_floating(o.dtype) ? DType::Float64 : DType::Int64;
  return add_scalar(kind, {ScalarSource::Constant, o.number.bits, {}, nullptr}, t);
}

int Builder::add_scalar(DType kind, ScalarSource source, DType t) {
  Expr e;
  e.kind = ExprKind::Scalar;
  e.dtype = t;
  e.index = static_cast<int32_t>(scalars_.size());
  kernel_.scalars.push_back(kind);
  scalars_.push_back(source);
  return append(e);
}

int Builder::reduce(ReduceOp op, int x) {
  if (x < 0) return -1;
  Expr e;
  e.kind = ExprKind::Reduce;
  e.reduce = op;
  e.dtype = type(x);
  e.args[0] = x;
  return append(e);
}

int Builder::extent(DType t) {
  Expr e;
  e.kind = ExprKind::Extent;
  e.dtype = t;
  e.index = 0;  // set when the axes are final
  return append(e);
}

}  // namespace fxjit::inline v0::kernel
