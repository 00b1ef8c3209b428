#include "kernel/lower/finish.h"

#include <algorithm>

#include "kernel/simplify.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {
namespace {

class Finisher {
 public:
  explicit Finisher(Builder& b) : b_(b), env_(b.env()), extents_(b.space().extents), reduced_(b.space().reduced) {}

  Result<Lowered> run() {
    order_axes();
    collapse();
    const size_t reductions = static_cast<size_t>(std::count(reduced_.begin(), reduced_.end(), true));
    if (reductions > 1) return Failure{"the reduced dimensions do not form one run through memory"};
    if (reductions == 1 && !reads_along_row()) return Failure{"a reduction over a dimension that is not innermost"};
    if (extents_.empty()) add_unit_axis();
    Lowered out = assemble();
    verify(out.kernel);
    return out;
  }

 private:
  // The buffer whose layout decides: an output over the whole space, else the input that moves along most axes.
  const BufferSource* leader() const {
    const BufferSource* best = nullptr;
    size_t best_score = 0;
    for (size_t i = 0; i < b_.buffers().size(); ++i) {
      const BufferSource& s = b_.buffers()[i];
      size_t moving = 0;
      for (Dim d : s.strides) moving += !env_.is_const(d, 0);
      const size_t score = 2 * moving + (b_.kernel().buffers[i].output ? 1 : 0);
      if (best == nullptr || score > best_score) {
        best = &s;
        best_score = score;
      }
    }
    return best;
  }

  // Outermost the largest stride; reduced axes behind all others. The hints decide: any order is right, one is fast.
  void order_axes() {
    const BufferSource* lead = leader();
    std::vector<size_t> order(extents_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t x, size_t y) {
      if (reduced_[x] != reduced_[y]) return bool{reduced_[y]};
      return std::pair(-env_.hint(lead->strides[x]), x) < std::pair(-env_.hint(lead->strides[y]), y);
    });
    auto permute = [&](auto& items) {
      auto old = items;
      for (size_t i = 0; i < order.size(); ++i) items[i] = old[order[i]];
    };
    permute(extents_);
    permute(reduced_);
    for (BufferSource& s : b_.buffers()) permute(s.strides);
  }

  bool mergeable(size_t outer) const {
    if (reduced_[outer] != reduced_[outer + 1]) return false;
    return std::all_of(b_.buffers().begin(), b_.buffers().end(), [&](const BufferSource& s) {
      return s.strides[outer] == env_.mul(s.strides[outer + 1], extents_[outer + 1]);
    });
  }

  void collapse() {
    for (size_t a = extents_.size(); a-- > 1;) {
      const size_t outer = a - 1;
      if (!mergeable(outer)) continue;
      extents_[outer] = env_.mul(extents_[outer], extents_[a]);
      const auto gone = static_cast<std::ptrdiff_t>(a);
      extents_.erase(extents_.begin() + gone);
      reduced_.erase(reduced_.begin() + gone);
      for (BufferSource& s : b_.buffers()) {
        s.strides[outer] = s.strides[a];
        s.strides.erase(s.strides.begin() + gone);
      }
    }
  }

  // At least one input is read step by step, or none moves along the row at all.
  bool reads_along_row() const {
    bool moves = false;
    for (size_t i = 0; i < b_.buffers().size(); ++i) {
      const Dim stride = b_.buffers()[i].strides.back();
      if (b_.kernel().buffers[i].output || env_.is_const(stride, 0)) continue;
      if (env_.is_const(stride, 1)) return true;
      moves = true;
    }
    return !moves;
  }

  // A kernel of one element still has an axis to run along.
  void add_unit_axis() {
    extents_.push_back(env_.constant(1));
    reduced_.push_back(false);
    for (size_t i = 0; i < b_.buffers().size(); ++i) {
      b_.buffers()[i].strides.push_back(env_.constant(b_.kernel().buffers[i].output ? 1 : 0));
    }
  }

  StrideClass classify(Dim stride) const {
    if (env_.is_const(stride, 0)) return StrideClass::Zero;
    return env_.is_const(stride, 1) ? StrideClass::Unit : StrideClass::Any;
  }

  Lowered assemble() {
    Lowered out;
    Kernel& k = b_.kernel();
    for (bool r : reduced_) k.axes.push_back(Axis{r});
    for (size_t i = 0; i < k.buffers.size(); ++i) {
      for (Dim s : b_.buffers()[i].strides) k.buffers[i].strides.push_back(classify(s));
    }
    for (Expr& e : k.exprs) {
      if (e.kind == ExprKind::Extent) e.index = static_cast<int32_t>(k.axes.size()) - 1;
    }
    const Kept kept = simplify(k);
    for (int32_t i : kept.buffers) out.buffers.push_back(std::move(b_.buffers()[static_cast<size_t>(i)]));
    for (int32_t i : kept.scalars) out.scalars.push_back(b_.scalars()[static_cast<size_t>(i)]);
    out.extents = std::move(extents_);
    out.kernel = std::move(k);
    return out;
  }

  Builder& b_;
  ShapeEnv& env_;
  std::vector<Dim> extents_;
  std::vector<bool> reduced_;
};

}  // namespace

Result<Lowered> finish(Builder& b) { return Finisher(b).run(); }

}  // namespace fxjit::inline v0::kernel
