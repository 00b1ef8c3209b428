// Replace every occurrence of a pattern, where pattern and replacement are written as functions.
#include <ATen/TensorOperators.h>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

int main() {
  const auto program = [](auto x, auto w1, auto w2) {
    auto m1 = fxjit::call_aten("cat", std::vector{w1, w2}).sum();
    auto m2 = fxjit::call_aten("cat", std::vector{w2, w1}).sum();
    return x + m1.max() + m2.max();
  };
  const auto pattern = [](fx::Proxy a, fx::Proxy b) { return fxjit::call_aten("cat", std::vector{a, b}).sum(); };
  const auto replacement = [](fx::Proxy a, fx::Proxy b) {
    const fx::Proxy x = a.sum(), y = b.sum();
    return x + y;
  };
  const fx::GraphModuleRef module =
      fx::symbolic_trace([&](fx::Proxy x, fx::Proxy y, fx::Proxy z) { return program(x, y, z); });
  std::cout << "== before\n" << module->graph().to_string() << "\n\n";
  const auto matches = fx::replace_pattern(*module, pattern, replacement);
  std::cout << "== after\n" << module->graph().to_string() << "\n";
  check(matches.size() == 2, "two occurrences were replaced");
  check(module->graph().find_nodes(fx::Opcode::CallFunction, fxjit::aten("cat")).empty(), "no cat is left");
  const at::Tensor x = at::randn({3}), w1 = at::randn({2, 4}), w2 = at::randn({5, 4});
  check(close(fxjit::to_tensor((*module)({x, w1, w2})), program(x, w1, w2)), "as eager");
}
