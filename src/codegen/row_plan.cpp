#include "codegen/row_plan.h"

#include <algorithm>

#include "codegen/schedule.h"

namespace fxjit::inline v0::codegen {

using kernel::Expr;
using kernel::ExprKind;

namespace {

// In vector instructions. A subtraction of the mean from a loaded value is computed again, an exponential is not.
constexpr int kWorthKeeping = 8;
constexpr int kCheapPass = 8;

class Planner {
 public:
  Planner(const kernel::Kernel& k, const std::vector<Level>& levels, const std::vector<char>& needed,
          const Schedule& schedule)
      : k_(k), levels_(levels), needed_(needed), schedule_(schedule), computed_in_(k.exprs.size(), -1) {}

  RowPlan run() {
    find_stages();
    make_passes();
    for (size_t p = 0; p < plan_.passes.size(); ++p) {
      fill(static_cast<int>(p));
      choose_vectors(plan_.passes[p]);
    }
    for (RowPlan::Kept& kept : plan_.kept) {
      plan_.passes[computed_in_[kept.expr]].kept.push_back(kept.expr);
      kept.buffer = output_for(kept.expr);
    }
    return std::move(plan_);
  }

 private:
  bool is_element(int id) const { return levels_[id] == Level::Element; }

  template <class F>
  void each_arg(int id, F f) const {
    for (int32_t a : k_.exprs[id].args) {
      if (a >= 0) f(a);
    }
  }

  void find_stages() {
    plan_.stage.assign(k_.exprs.size(), 0);
    for (size_t i = 0; i < k_.exprs.size(); ++i) {
      each_arg(i, [&](int a) { plan_.stage[i] = std::max(plan_.stage[i], plan_.stage[a]); });
      plan_.stage[i] += k_.exprs[i].kind == ExprKind::Reduce;
    }
  }

  bool is_element_store(const kernel::Store& s) const {
    return k_.buffers[s.buffer].strides.back() != kernel::StrideClass::Zero;
  }

  void make_passes() {
    int last = -1;
    bool stores = false;
    for (size_t i = 0; i < k_.exprs.size(); ++i) {
      if (needed_[i] && k_.exprs[i].kind == ExprKind::Reduce) last = std::max(last, plan_.stage[i] - 1);
    }
    for (const kernel::Store& s : k_.stores) {
      if (!is_element_store(s)) continue;
      stores = true;
      last = std::max(last, plan_.stage[s.expr]);
    }
    plan_.passes.resize(last + 1);
    if (stores) plan_.passes[last].stores = true;
    for (size_t i = 0; i < k_.exprs.size(); ++i) {
      if (needed_[i] && k_.exprs[i].kind == ExprKind::Reduce) plan_.passes[plan_.stage[i] - 1].reductions.push_back(i);
    }
  }

  void fill(int p) {
    RowPass& pass = plan_.passes[p];
    pass.computed.assign(k_.exprs.size(), false);
    for (int r : pass.reductions) visit(p, k_.exprs[r].args[0]);
    if (!pass.stores) return;
    for (const kernel::Store& s : k_.stores) {
      if (is_element_store(s)) visit(p, s.expr);
    }
  }

  // Accumulators hide the latency of additions, so cheap passes want many. Longer bodies and several reductions have
  // enough to overlap with two, and a pass that stores is faster with two (RMS norm 4096 x 768: 399 us against 556 with
  // four).
  void choose_vectors(RowPass& pass) const {
    int cost = 0;
    for (size_t i = 0; i < k_.exprs.size(); ++i) {
      if (pass.computed[i]) cost += cost_of(k_, k_.exprs[i]);
    }
    const bool two_do = pass.stores || cost > kCheapPass || pass.reductions.size() > 1;
    pass.vectors = two_do ? std::min(schedule_.vectors, 2) : schedule_.vectors;
  }

  // An output that no other value has, contiguous and of this type. It may be the memory of an input, so nothing may be
  // read from inputs any more; and what is written past the caches is not there to be read.
  int output_for(int id) const {
    if (schedule_.nontemporal) return -1;
    for (size_t p = computed_in_[id] + 1; p < plan_.passes.size(); ++p) {
      for (size_t i = 0; i < k_.exprs.size(); ++i) {
        if (plan_.passes[p].computed[i] && k_.exprs[i].kind == ExprKind::Load) return -1;
      }
    }
    for (const kernel::Store& s : k_.stores) {
      const kernel::Buffer& buffer = k_.buffers[s.buffer];
      const bool is_taken =
          std::any_of(plan_.kept.begin(), plan_.kept.end(), [&](auto& kept) { return kept.buffer == s.buffer; });
      const bool fits = buffer.strides.back() == kernel::StrideClass::Unit && buffer.dtype == k_.exprs[id].dtype;
      if (fits && !is_half(buffer.dtype) && !is_taken) return s.buffer;
    }
    return -1;
  }

  // From the top, so that the largest value that an earlier pass has computed is the one kept.
  void visit(int p, int id) {
    RowPass& pass = plan_.passes[p];
    if (!is_element(id) || pass.computed[id]) return;
    if (std::find(pass.taken.begin(), pass.taken.end(), id) != pass.taken.end()) return;
    const bool known = computed_in_[id] >= 0 && computed_in_[id] < p;
    if (known && cost_again(id) >= kWorthKeeping) {
      pass.taken.push_back(id);
      const bool is_kept =
          std::any_of(plan_.kept.begin(), plan_.kept.end(), [&](auto& kept) { return kept.expr == id; });
      if (!is_kept) plan_.kept.push_back({id, -1});
      return;
    }
    pass.computed[id] = true;
    if (computed_in_[id] < 0) computed_in_[id] = p;
    each_arg(id, [&](int a) { visit(p, a); });
  }

  // Of an element value from its loads on.
  int cost_again(int id) const {
    std::vector<char> seen(k_.exprs.size());
    std::vector<int> open = {id};
    int cost = 0;
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      if (seen[i] || !is_element(i)) continue;
      seen[i] = true;
      cost += cost_of(k_, k_.exprs[i]);
      each_arg(i, [&](int a) { open.push_back(a); });
    }
    return cost;
  }

  const kernel::Kernel& k_;
  const std::vector<Level>& levels_;
  const std::vector<char>& needed_;
  const Schedule& schedule_;
  std::vector<int> computed_in_;  // per expression: the first pass that computes it, or -1
  RowPlan plan_;
};

}  // namespace

RowPlan plan_rows(const kernel::Kernel& k, const std::vector<Level>& levels, const std::vector<char>& needed,
                  const Schedule& schedule) {
  return Planner(k, levels, needed, schedule).run();
}

}  // namespace fxjit::inline v0::codegen
