#include "codegen/emit_kernel.h"

#include "codegen/emission.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {

std::unique_ptr<llvm::Module> emit_kernel(llvm::LLVMContext& context, const kernel::Kernel& k, const Schedule& schedule,
                                          const TargetHooks& hooks, const std::string& symbol) {
  for (const kernel::Expr& e : k.exprs) {
    if (e.kind != kernel::ExprKind::Op) continue;
    int last = 0;
    while (last < 2 && e.args[last + 1] >= 0) ++last;
    const DType t = k.exprs[e.args[last]].dtype;
    FXJIT_CHECK(ops::compiles(e.op, t), "no kernel code for ", ops::row(e.op).name, " on ", to_text(t));
  }
  Emission e(context, k, schedule, hooks, symbol);
  if (k.has_reduction()) {
    emit_rows(e);
  } else {
    emit_elementwise(e);
  }
  return std::move(e.module);
}

}  // namespace fxjit::inline v0::codegen
