// Accumulators of one reduction over a row: U x lanes of them, combined in a fixed tree.
#pragma once

#include "codegen/emission.h"

namespace fxjit::inline v0::codegen {

class Reduction {
 public:
  // `vectors`: accumulators, U of the pass. `place`: how many reductions of the pass come before it.
  Reduction(Emission& e, int expr, int vectors, size_t place);

  int expr() const { return expr_; }
  // Sums of floating numbers run in chunks whose totals are added with compensation, so that the error of a long row
  // does not grow with its length.
  bool is_cascaded() const;
  size_t width() const { return vectors_ + has_nan_flag(); }  // values carried round the loop

  // Appends the initial values, `width()` of them.
  void start(llvm::SmallVectorImpl<llvm::Value*>& carried) const;
  // Adds the value of one step to the carried values; lanes outside of the mask count as the identity.
  void accumulate(llvm::MutableArrayRef<llvm::Value*> carried, const Vec& v, const Step& step) const;
  // The U vectors as one.
  llvm::Value* fold_vectors(llvm::ArrayRef<llvm::Value*> carried) const;
  // One vector, and the flag if there is one, to the scalar result.
  llvm::Value* fold_lanes(llvm::Value* vector, llvm::Value* nan_flag) const;
  llvm::Value* nan_flag(llvm::ArrayRef<llvm::Value*> carried) const {
    return has_nan_flag() ? carried.back() : nullptr;
  }

  llvm::Value* identity() const;  // one vector

 private:
  bool has_nan_flag() const;
  bool is_logical() const;
  llvm::Value* combine(llvm::Value* x, llvm::Value* y) const;
  void add_by_fma(llvm::MutableArrayRef<llvm::Value*> carried, const Vec& v, const Step& step) const;
  llvm::Type* flag_type() const;

  Emission& e_;
  int expr_;
  kernel::ReduceOp op_;
  DType type_;
  size_t vectors_;
  bool by_fma_;
};

}  // namespace fxjit::inline v0::codegen
