// Symbolic sizes. A Dim is an expression over symbols (sizes, strides, ints of the inputs), hash-consed in its
// ShapeEnv: equal structure is equal id. Each symbol has a hint, its value in the example call; a question that is
// answered from hints is recorded as a guard.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fxjit/api.h"

namespace fxjit::inline v0 {

struct Dim {
  int32_t id = -1;
  bool operator==(const Dim&) const = default;
};

// Where a symbol's value is read at call time.
struct SymSource {
  enum Kind : uint8_t { Size, Stride, Int } kind = Size;
  int32_t input = 0;  // index among the inputs of `forward`
  int32_t dim = 0;    // for Size and Stride
};

struct SymExpr {
  enum Kind : uint8_t { Const, Symbol, Add, Mul, FloorDiv, Mod, Max } kind = Const;
  int64_t value = 0;  // Const: the value; Symbol: index into symbols()
  Dim a, b;           // operands of the others
};

// lhs REL rhs must hold for the specialisation to apply.
struct SymGuard {
  enum Rel : uint8_t { Eq, Ne, Lt, Le } rel = Eq;
  Dim lhs, rhs;
};

class FXJIT_API ShapeEnv {
 public:
  Dim constant(int64_t v);
  // The symbol of a size, stride or int of an input. Sizes 0 and 1 are specialised (the constant is returned), and
  // two sizes of equal hint share one symbol, so that equal shapes have equal structure. The host function compares
  // each input's size and stride with the expression that stands for it, which guards both choices.
  Dim symbol(SymSource source, int64_t hint);
  Dim add(Dim a, Dim b);
  Dim mul(Dim a, Dim b);
  Dim floordiv(Dim a, Dim b);  // b must not be the constant 0
  Dim mod(Dim a, Dim b);
  Dim max(Dim a, Dim b);
  Dim product(std::span<const Dim> dims);

  int64_t hint(Dim d) const { return hints_[d.id]; }
  const SymExpr& expr(Dim d) const { return exprs_[d.id]; }
  bool is_const(Dim d) const { return exprs_[d.id].kind == SymExpr::Const; }
  bool is_const(Dim d, int64_t v) const { return is_const(d) && exprs_[d.id].value == v; }

  // Answers from the hints; records what the answer rests on. Structural equality needs no guard.
  bool guard_eq(Dim a, Dim b);
  bool guard_lt(Dim a, Dim b);
  bool guard_le(Dim a, Dim b);

  std::span<const SymSource> symbols() const { return sources_; }
  std::span<const SymGuard> guards() const { return guards_; }
  size_t size() const { return exprs_.size(); }
  std::string to_string(Dim d) const;

  // Evaluates with other values for the symbols; the host function does the same in LLVM IR.
  int64_t evaluate(Dim d, std::span<const int64_t> symbol_values) const;

 private:
  Dim intern(SymExpr e, int64_t hint);
  void add_guard(SymGuard g);

  std::vector<SymExpr> exprs_;
  std::vector<int64_t> hints_;
  std::vector<SymSource> sources_;
  std::vector<SymGuard> guards_;
  std::unordered_map<uint64_t, std::vector<int32_t>> index_;
  std::unordered_map<int64_t, Dim> size_of_hint_;
};

}  // namespace fxjit::inline v0
