#include "kernel/rows.h"

#include "kernel/text.h"

namespace fxjit::inline v0::kernel {

std::vector<bool> row_values_of(const Kernel& k) {
  std::vector<bool> out(k.exprs.size());
  for (size_t i = 0; i < k.exprs.size(); ++i) {
    const Expr& e = k.exprs[i];
    bool same = true;
    if (e.kind == ExprKind::Load) {
      same = k.buffers[static_cast<size_t>(e.index)].strides.back() == StrideClass::Zero;
    } else if (e.kind != ExprKind::Reduce) {
      for (int a = 0; a < arg_count(e); ++a) same = same && out[static_cast<size_t>(e.args[a])];
    }
    out[i] = same;
  }
  return out;
}

}  // namespace fxjit::inline v0::kernel
