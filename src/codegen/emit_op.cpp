// The EMIT column of the operator table, one function a row.
#include <limits>

#include "codegen/emission.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten)                            \
  Vec emit_##name([[maybe_unused]] Builder& b, [[maybe_unused]] const Vec& x, [[maybe_unused]] const Vec& y, \
                  [[maybe_unused]] const Vec& z) {                                                           \
    emit                                                                                                     \
  }
#include "fxjit/ops/elementwise.def"

using EmitFn = Vec (*)(Builder&, const Vec&, const Vec&, const Vec&);

constexpr EmitFn kRows[] = {
#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten) emit_##name,
#include "fxjit/ops/elementwise.def"
};

}  // namespace

Vec emit_op(Builder& b, ops::OpId op, llvm::ArrayRef<Vec> args) {
  const Vec none;
  // T is the type of the last operand: `where` has a mask first.
  b.set_type(args.back().type);
  return kRows[static_cast<size_t>(op)](b, args[0], args.size() > 1 ? args[1] : none, args.size() > 2 ? args[2] : none);
}

}  // namespace fxjit::inline v0::codegen
