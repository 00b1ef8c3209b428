#include "kernel/simplify.h"

#include <array>
#include <unordered_map>

#include "kernel/text.h"
#include "ops/value.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {
namespace {

using ops::OpId;
using ops::Value;

// Significant bits and, for floating types, the exponent range as a rank.
struct Precision {
  int bits, range;
};

Precision precision_of(DType t) {
  switch (t) {
    case DType::Float16:
      return {11, 0};
    case DType::BFloat16:
      return {8, 1};
    case DType::Float32:
      return {24, 1};
    case DType::Float64:
      return {53, 2};
    case DType::Bool:
      return {1, 0};
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  return {static_cast<int>(8 * size_of(t)) - (kind_of(t) == 'i' ? 1 : 0), 0};
}

bool is_const(const Expr& e, double v) {
  if (e.kind != ExprKind::Const) return false;
  return is_floating(e.dtype) ? Value{e.bits} == Value::of(v) : Value{e.bits}.i() == static_cast<int64_t>(v);
}

struct ExprHash {
  size_t operator()(const Expr& e) const {
    uint64_t h = static_cast<uint64_t>(e.kind) | static_cast<uint64_t>(e.dtype) << 8 |
                 static_cast<uint64_t>(e.op) << 16 | static_cast<uint64_t>(e.reduce) << 32;
    for (uint64_t v : {static_cast<uint64_t>(e.index), static_cast<uint64_t>(e.args[0]),
                       static_cast<uint64_t>(e.args[1]), static_cast<uint64_t>(e.args[2]), e.bits}) {
      h = (h ^ v) * 0xff51afd7ed558ccdull;
      h ^= h >> 32;
    }
    return h;
  }
};

class Simplifier {
 public:
  explicit Simplifier(Kernel& k) : k_(k) {}

  Kept run() {
    std::vector<Expr> old = std::move(k_.exprs);
    k_.exprs.clear();
    std::vector<int32_t> now(old.size());
    for (size_t i = 0; i < old.size(); ++i) {
      Expr e = old[i];
      for (int a = 0; a < arg_count(e); ++a) e.args[a] = now[static_cast<size_t>(e.args[a])];
      now[i] = rewrite(e);
    }
    for (Store& s : k_.stores) s.expr = now[static_cast<size_t>(s.expr)];
    return remove_dead();
  }

 private:
  const Expr& at(int32_t id) const { return k_.exprs[static_cast<size_t>(id)]; }

  int32_t append(const Expr& e) {
    auto [it, fresh] = known_.emplace(e, static_cast<int32_t>(k_.exprs.size()));
    if (fresh) k_.exprs.push_back(e);
    return it->second;
  }

  int32_t constant(DType t, Value v) {
    Expr e;
    e.kind = ExprKind::Const;
    e.dtype = t;
    e.bits = v.bits;
    return append(e);
  }

  int32_t rewrite(Expr e) {
    if (e.kind == ExprKind::Cast) return rewrite_cast(e);
    if (e.kind == ExprKind::Op) return rewrite_op(e);
    return append(e);
  }

  int32_t rewrite_cast(Expr e) {
    const Expr& arg = at(e.args[0]);
    if (arg.dtype == e.dtype) return e.args[0];
    if (arg.kind == ExprKind::Const) return constant(e.dtype, ops::cast(arg.dtype, e.dtype, Value{arg.bits}));
    if (arg.kind == ExprKind::Cast && is_exact_cast(at(arg.args[0]).dtype, arg.dtype)) {
      e.args[0] = arg.args[0];
      return rewrite_cast(e);
    }
    return append(e);
  }

  int32_t rewrite_op(const Expr& e) {
    const bool floating_one = (e.op == OpId::mul || e.op == OpId::div) && is_const(at(e.args[1]), 1);
    if (floating_one || (e.op == OpId::sub && is_const(at(e.args[1]), 0))) return e.args[0];
    if (e.op == OpId::mul && is_const(at(e.args[0]), 1)) return e.args[1];
    if (e.op == OpId::where && at(e.args[0]).kind == ExprKind::Const) return e.args[at(e.args[0]).bits != 0 ? 1 : 2];
    const int count = arg_count(e);
    std::array<Value, 3> values;
    for (int a = 0; a < count; ++a) {
      if (at(e.args[a]).kind != ExprKind::Const) return append(e);
      values[static_cast<size_t>(a)] = Value{at(e.args[a]).bits};
    }
    const DType t = at(e.args[count - 1]).dtype;
    const bool exact =
        !(ops::row(e.op).domain & ops::bit(DType::Float32)) || (ops::row(e.op).domain & ops::bit(DType::Float64));
    return exact ? constant(e.dtype, ops::apply(e.op, t, values[0], values[1], values[2])) : append(e);
  }

  Kept remove_dead() {
    std::vector<bool> live(k_.exprs.size());
    for (const Store& s : k_.stores) live[static_cast<size_t>(s.expr)] = true;
    std::vector<bool> buffers(k_.buffers.size()), scalars(k_.scalars.size());
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i] = k_.buffers[i].output;
    for (size_t i = k_.exprs.size(); i-- > 0;) {
      if (!live[i]) continue;
      const Expr& e = k_.exprs[i];
      for (int a = 0; a < arg_count(e); ++a) live[static_cast<size_t>(e.args[a])] = true;
      if (e.kind == ExprKind::Load) buffers[static_cast<size_t>(e.index)] = true;
      if (e.kind == ExprKind::Scalar) scalars[static_cast<size_t>(e.index)] = true;
    }
    Kept kept;
    const std::vector<int32_t> new_expr = compact(k_.exprs, live, nullptr);
    const std::vector<int32_t> new_buffer = compact(k_.buffers, buffers, &kept.buffers);
    const std::vector<int32_t> new_scalar = compact(k_.scalars, scalars, &kept.scalars);
    for (Expr& e : k_.exprs) {
      for (int a = 0; a < arg_count(e); ++a) e.args[a] = new_expr[static_cast<size_t>(e.args[a])];
      if (e.kind == ExprKind::Load) e.index = new_buffer[static_cast<size_t>(e.index)];
      if (e.kind == ExprKind::Scalar) e.index = new_scalar[static_cast<size_t>(e.index)];
    }
    for (Store& s : k_.stores) s = {new_buffer[static_cast<size_t>(s.buffer)], new_expr[static_cast<size_t>(s.expr)]};
    return kept;
  }

  // Drops the items that are not live; returns the new number of each.
  template <class T>
  static std::vector<int32_t> compact(std::vector<T>& items, const std::vector<bool>& live,
                                      std::vector<int32_t>* kept) {
    std::vector<int32_t> numbers(items.size(), -1);
    size_t count = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!live[i]) continue;
      numbers[i] = static_cast<int32_t>(count);
      if (kept != nullptr) kept->push_back(static_cast<int32_t>(i));
      if (count != i) items[count] = std::move(items[i]);
      ++count;
    }
    items.resize(count);
    return numbers;
  }

  Kernel& k_;
  std::unordered_map<Expr, int32_t, ExprHash> known_;
};

}  // namespace

bool is_exact_cast(DType from, DType to) {
  if (from == to || from == DType::Bool) return true;
  if (to == DType::Bool) return false;
  const Precision a = precision_of(from), b = precision_of(to);
  if (is_floating(from)) return is_floating(to) && a.bits <= b.bits && a.range <= b.range;
  if (kind_of(from) == 'i' && kind_of(to) == 'u') return false;
  return a.bits <= b.bits;
}

Kept simplify(Kernel& k) { return Simplifier(k).run(); }

}  // namespace fxjit::inline v0::kernel
