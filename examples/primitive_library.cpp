// A library of composite operations in C++, without Python: functions that stay one node in a traced graph, until they
// are inlined by editing the graph or while tracing. Then the program is compiled and compared with eager.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdlib>
#include <iostream>

#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

// ---- The library: each body serves tensors and Proxies alike.

// wrap() says: record a call as one call_function node, and keep the body.
const auto sigmoid_lowp = fx::wrap("sigmoid_lowp", [](auto x) { return x.to(at::kFloat).sigmoid().to(at::kHalf); });

const auto add_lowp = fx::wrap("add_lowp", [](auto a, auto b) {
  auto x = a.to(at::kFloat), y = b.to(at::kFloat);
  return (x + y).to(at::kHalf);
});

const auto foo = [](auto x, auto y) {
  auto a = sigmoid_lowp(x);  // statements: C++ does not order the arguments of a call
  auto b = sigmoid_lowp(y);
  return add_lowp(a, b);
};

// ---- Inlining by graph manipulation

void inline_lowp(fx::Node* n) {
  // The operations of the body are recorded in front of the call, by calling it with Proxies for its arguments …
  fx::GraphAppendingTracer tracer(n->graph());
  auto scope = n->graph().inserting_before(n);
  fx::Argument result = n->callable().trace_body(tracer, n->args().items(), n->kwargs());
  // … then whoever used the call uses their result, and the call goes.
  n->replace_all_uses_with(result);
  n->graph().erase_node(n);
}

// ---- Inlining while tracing

class InliningTracer : public fx::Tracer {
 public:
  bool is_leaf_function(const fx::Callable& f) override { return &f != add_lowp.target().get(); }
};

// ---- Comparison

int failures = 0;

void check(const char* what, const at::Tensor& got, const at::Tensor& want) {
  const bool same_kind = got.sizes() == want.sizes() && got.strides() == want.strides() && got.dtype() == want.dtype();
  const double error = (got.to(at::kDouble) - want.to(at::kDouble)).abs().max().item<double>();
  const bool ok = same_kind && error <= 1e-3;  // one step of float16 below 2
  std::cout << what << ": largest difference from eager " << error << (ok ? "" : "   WRONG") << "\n";
  failures += !ok;
}

int main() {
  c10::NoGradGuard no_grad;
  fx::GraphModuleRef traced = fx::symbolic_trace(foo);
  std::cout << "==== traced: the composites are leaves\n" << traced->graph().to_string() << "\n\n";
  std::cout << "==== its generic forward\n" << traced->code() << "\n";

  for (fx::Node* n : traced->graph().find_nodes(fx::Opcode::CallFunction, sigmoid_lowp.target())) inline_lowp(n);
  traced->graph().lint();
  traced->recompile();  // until here the old code runs
  std::cout << "==== sigmoid_lowp inlined by graph manipulation\n" << traced->graph().to_string() << "\n\n";

  InliningTracer tracer;
  fx::GraphPtr graph = tracer.trace(fx::trace_function(foo));
  fx::GraphModuleRef module = fx::GraphModule::create(tracer.root(), graph);
  std::cout << "==== add_lowp inlined while tracing\n" << module->graph().to_string() << "\n\n";

  at::Tensor x = at::randn({16}, at::kHalf), y = at::randn({16}, at::kHalf);
  const at::Tensor want = foo(x, y);  // eager
  auto f = fxjit::compile(traced);
  check("recorded call", f(x, y), want);
  check("compiled call", f(x, y), want);
  check("compiled call, another size", f(x.repeat({3}), y.repeat({3})), want.repeat({3}));
  check("the module itself", fxjit::to_tensor((*module)({x, y})), want);
  check("the module itself, compiled", fxjit::to_tensor((*module)({x, y})), want);

  std::cout << "\n==== code\n" << f.code() << "\n==== explain\n" << to_string(f.explain());
  const bool compiled = f.explain().specialisations.size() == 1 && f.explain().specialisations[0].kernels.size() == 1;
  if (!compiled) std::cout << "the program was not compiled to one kernel\n";
  return failures == 0 && compiled ? EXIT_SUCCESS : EXIT_FAILURE;
}
