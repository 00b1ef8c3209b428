#include "fxjit/sym.h"

#include <algorithm>

#include "support/errors.h"

namespace fxjit::inline v0 {
namespace {

// Python's and ATen's floor division; sizes may be negative in the middle of shape arithmetic.
int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));  // the least integer has no negative
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

int64_t apply(SymExpr::Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case SymExpr::Const:
    case SymExpr::Symbol:
      break;
    case SymExpr::Add:
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    case SymExpr::Mul:
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case SymExpr::FloorDiv:
      return b == 0 ? 0 : floor_div(a, b);
    case SymExpr::Mod:
      return b == 0 || b == -1 ? 0 : a - floor_div(a, b) * b;
    case SymExpr::Max:
      return std::max(a, b);
  }
  FXJIT_CHECK(false, "a leaf has no operands to apply");
  return 0;
}

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

// A total order by form alone, so that an expression is written in one way whatever was made before it.
int compare(const ShapeEnv& env, Dim x, Dim y) {
  if (x == y) return 0;
  const SymExpr &a = env.expr(x), &b = env.expr(y);
  // Symbols first, numbers last.
  const auto rank = [](SymExpr::Kind kind) { return kind == SymExpr::Const ? SymExpr::Max + 1 : int{kind}; };
  if (a.kind != b.kind) return rank(a.kind) < rank(b.kind) ? -1 : 1;
  if (a.kind == SymExpr::Const || a.kind == SymExpr::Symbol) return a.value < b.value ? -1 : 1;
  const int first = compare(env, a.a, b.a);
  return first != 0 ? first : compare(env, a.b, b.b);
}

}  // namespace

Dim ShapeEnv::intern(SymExpr e, int64_t hint) {
  uint64_t h = mix(mix(mix(e.kind, static_cast<uint64_t>(e.value)), e.a.id), e.b.id);
  for (int32_t id : index_[h]) {
    const SymExpr& o = exprs_[id];
    if (o.kind == e.kind && o.value == e.value && o.a == e.a && o.b == e.b) return Dim{id};
  }
  Dim d{static_cast<int32_t>(exprs_.size())};
  exprs_.push_back(e);
  hints_.push_back(hint);
  index_[h].push_back(d.id);
  return d;
}

Dim ShapeEnv::constant(int64_t v) { return intern({SymExpr::Const, v, {}, {}}, v); }

Dim ShapeEnv::symbol(SymSource source, int64_t hint) {
  if (source.kind == SymSource::Size) {
    // 0 and 1 change what an operator does (nothing to do, broadcasting), so they are values of their own.
    if (hint == 0 || hint == 1) return constant(hint);
    if (auto it = size_of_hint_.find(hint); it != size_of_hint_.end()) return it->second;
  }
  auto index = static_cast<int64_t>(sources_.size());
  sources_.push_back(source);
  Dim d = intern({SymExpr::Symbol, index, {}, {}}, hint);
  if (source.kind == SymSource::Size) {
    size_of_hint_.emplace(hint, d);
    add_guard({SymGuard::Lt, constant(1), d});
  }
  return d;
}

// Sums are kept as left-deep chains in order of form with the number last: (s0 + -1) + 1 is s0.
Dim ShapeEnv::add(Dim a, Dim b) {
  std::vector<Dim> terms;
  int64_t number = 0;
  auto collect = [&](auto&& self, Dim d) -> void {
    const SymExpr e = expr(d);
    if (e.kind == SymExpr::Const) {
      number = apply(SymExpr::Add, number, e.value);
    } else if (e.kind == SymExpr::Add) {
      self(self, e.a);
      self(self, e.b);
    } else {
      terms.push_back(d);
    }
  };
  collect(collect, a);
  collect(collect, b);
  std::sort(terms.begin(), terms.end(), [this](Dim x, Dim y) { return compare(*this, x, y) < 0; });
  if (number != 0 || terms.empty()) terms.push_back(constant(number));
  Dim r = terms[0];
  for (size_t i = 1; i < terms.size(); ++i)
    r = intern({SymExpr::Add, 0, r, terms[i]}, apply(SymExpr::Add, hint(r), hint(terms[i])));
  return r;
}

// Products are kept as left-deep chains in order of form, so that equal products are equal ids however they were made.
Dim ShapeEnv::mul(Dim a, Dim b) {
  std::vector<Dim> factors;
  int64_t scale = 1;
  auto collect = [&](auto&& self, Dim d) -> void {
    const SymExpr e = expr(d);
    if (e.kind == SymExpr::Const) {
      scale = apply(SymExpr::Mul, scale, e.value);
    } else if (e.kind == SymExpr::Mul) {
      self(self, e.a);
      self(self, e.b);
    } else {
      factors.push_back(d);
    }
  };
  collect(collect, a);
  collect(collect, b);
  if (scale == 0 || factors.empty()) return constant(factors.empty() ? scale : 0);
  std::sort(factors.begin(), factors.end(), [this](Dim x, Dim y) { return compare(*this, x, y) < 0; });
  Dim r = factors[0];
  for (size_t i = 1; i < factors.size(); ++i)
    r = intern({SymExpr::Mul, 0, r, factors[i]}, apply(SymExpr::Mul, hint(r), hint(factors[i])));
  if (scale == 1) return r;
  Dim c = constant(scale);
  return intern({SymExpr::Mul, 0, r, c}, apply(SymExpr::Mul, hint(r), scale));
}

Dim ShapeEnv::floordiv(Dim a, Dim b) {
  FXJIT_CHECK(!is_const(b, 0), "division of a size by the constant 0");
  if (is_const(a) && is_const(b)) return constant(floor_div(expr(a).value, expr(b).value));
  if (is_const(b, 1)) return a;
  if (a == b) return constant(1);
  if (expr(a).kind == SymExpr::Mul && expr(a).b == b) return expr(a).a;  // (x * b) / b
  return intern({SymExpr::FloorDiv, 0, a, b}, apply(SymExpr::FloorDiv, hint(a), hint(b)));
}

Dim ShapeEnv::mod(Dim a, Dim b) {
  FXJIT_CHECK(!is_const(b, 0), "remainder of a size by the constant 0");
  if (is_const(a) && is_const(b)) return constant(apply(SymExpr::Mod, expr(a).value, expr(b).value));
  if (is_const(b, 1) || a == b) return constant(0);
  if (expr(a).kind == SymExpr::Mul && expr(a).b == b) return constant(0);
  return intern({SymExpr::Mod, 0, a, b}, apply(SymExpr::Mod, hint(a), hint(b)));
}

Dim ShapeEnv::max(Dim a, Dim b) {
  if (a == b) return a;
  if (is_const(a) && is_const(b)) return constant(std::max(expr(a).value, expr(b).value));
  if (compare(*this, b, a) < 0) std::swap(a, b);
  return intern({SymExpr::Max, 0, a, b}, std::max(hint(a), hint(b)));
}

Dim ShapeEnv::product(std::span<const Dim> dims) {
  Dim r = constant(1);
  for (Dim d : dims) r = mul(r, d);
  return r;
}

void ShapeEnv::add_guard(SymGuard g) {
  for (const SymGuard& o : guards_)
    if (o.rel == g.rel && o.lhs == g.lhs && o.rhs == g.rhs) return;
  guards_.push_back(g);
}

bool ShapeEnv::guard_eq(Dim a, Dim b) {
  if (a == b) return true;
  if (is_const(a) && is_const(b)) return false;
  if (compare(*this, b, a) < 0) std::swap(a, b);
  bool equal = hint(a) == hint(b);
  add_guard({equal ? SymGuard::Eq : SymGuard::Ne, a, b});
  return equal;
}

bool ShapeEnv::guard_lt(Dim a, Dim b) {
  if (a == b) return false;
  bool less = hint(a) < hint(b);
  if (!(is_const(a) && is_const(b))) {
    if (less)
      add_guard({SymGuard::Lt, a, b});
    else
      add_guard({SymGuard::Le, b, a});
  }
  return less;
}

bool ShapeEnv::guard_le(Dim a, Dim b) { return a == b || !guard_lt(b, a); }

int64_t ShapeEnv::evaluate(Dim d, std::span<const int64_t> values) const {
  const SymExpr& e = expr(d);
  if (e.kind == SymExpr::Const) return e.value;
  if (e.kind == SymExpr::Symbol) return values[e.value];
  return apply(e.kind, evaluate(e.a, values), evaluate(e.b, values));
}

std::string ShapeEnv::to_string(Dim d) const {
  const SymExpr& e = expr(d);
  auto binary = [&](const char* op) { return "(" + to_string(e.a) + op + to_string(e.b) + ")"; };
  switch (e.kind) {
    case SymExpr::Const:
      return std::to_string(e.value);
    case SymExpr::Symbol: {
      const SymSource& s = sources_[e.value];
      const char* name = s.kind == SymSource::Size ? "s" : s.kind == SymSource::Stride ? "t" : "n";
      return name + std::to_string(e.value);
    }
    case SymExpr::Add:
      return binary(" + ");
    case SymExpr::Mul:
      return to_string(e.a) + "*" + to_string(e.b);
    case SymExpr::FloorDiv:
      return binary(" // ");
    case SymExpr::Mod:
      return binary(" % ");
    case SymExpr::Max:
      return "max(" + to_string(e.a) + ", " + to_string(e.b) + ")";
  }
  return "?";
}

}  // namespace fxjit::inline v0
