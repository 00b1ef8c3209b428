// A library of composite operations, in C++: the counterpart of primitive_library.py, with no Python in the process.
//
// A composite is a function made of several tensor operations that stays one node of the graph. That leaves the choice
// of level to whoever looks at the graph: a backend may want sigmoid_lowp as a whole, another one its parts. This
// program traces a function at the level of composites, opens them in three ways, and checks that every form computes
// the same as eager.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>

#include "fxjit/fxjit.h"

namespace {

namespace fx = fxjit::fx;

// One body for traced values and for tensors. Called with a Proxy it is recorded as one node.
const auto sigmoid_lowp = fx::wrap("sigmoid_lowp", [](auto x) { return x.to(at::kFloat).sigmoid().to(at::kHalf); });

const auto add_lowp = fx::wrap("add_lowp", [](auto a, auto b) {
  a = a.to(at::kFloat);
  b = b.to(at::kFloat);
  return (a + b).to(at::kHalf);
});

const auto foo = [](auto x, auto y) {
  x = sigmoid_lowp(x);
  y = sigmoid_lowp(y);
  return add_lowp(x, y);
};

// A backend may choose a level while tracing: composites for which this is false never become nodes.
class OpeningTracer : public fx::Tracer {
 public:
  bool is_leaf_function(const fx::Callable& f) override { return &f != add_lowp.target().get(); }
};

// The same by the one place where nodes are made, which may do anything instead.
class InliningTracer : public fx::Tracer {
 public:
  fx::Node* create_node(fx::Opcode op, const fx::Target& target, fx::Argument args, fx::Argument kwargs,
                        std::optional<std::string_view> name, fx::Argument type) override {
    if (op != fx::Opcode::CallFunction || target != fx::Argument(add_lowp.target())) {
      return Tracer::create_node(op, target, std::move(args), std::move(kwargs), name, std::move(type));
    }
    fx::GraphAppendingTracer tracer(graph());
    return add_lowp.target()->trace_body(tracer, args.items(), kwargs).as_node();
  }
};

void check(const char* title, const fx::GraphModuleRef& module, const at::Tensor& x, const at::Tensor& y) {
  std::printf("== %s\n%s\n\n", title, module->graph().to_string().c_str());
  const at::Tensor result = fxjit::to_tensor((*module)({x, y}));
  if (at::equal(result, foo(x, y))) return;
  std::fprintf(stderr, "%s: another result than eager's\n", title);
  std::exit(1);
}

}  // namespace

int main() {
  const c10::NoGradGuard no_grad;
  const at::Tensor x = at::randn({8}).to(at::kHalf), y = at::randn({8}).to(at::kHalf);

  const fx::GraphModuleRef module = fx::symbolic_trace(foo);
  check("composites are nodes", module, x, y);

  // The calls of sigmoid_lowp give way to its body; the graph may be changed while it is walked.
  for (fx::Node* n : module->graph().nodes()) {
    if (n->target() == fx::Argument(sigmoid_lowp.target())) fx::inline_call(n);
  }
  module->recompile();  // until then the edited graph changes nothing
  check("sigmoid_lowp inlined in the graph", module, x, y);

  InliningTracer inlining;
  fx::GraphPtr graph = inlining.trace(fx::trace_function(foo));
  check("add_lowp opened by create_node", fx::GraphModule::create(inlining.root(), graph), x, y);

  OpeningTracer opening;
  graph = opening.trace(fx::trace_function(foo));
  const fx::GraphModuleRef opened = fx::GraphModule::create(opening.root(), graph);
  check("add_lowp opened by is_leaf_function", opened, x, y);

  const fxjit::CompiledFunction compiled = fxjit::compile(opened);
  for (int call = 0; call < 2; ++call) {  // the first call is recorded, the second runs machine code
    if (at::equal(compiled(x, y), foo(x, y))) continue;
    std::fprintf(stderr, "compiled call %d: another result than eager's\n", call);
    return 1;
  }
  std::printf("== how it runs\n%s\n== its code\n%s\n", to_string(compiled.explain()).c_str(), compiled.code().c_str());
  return 0;
}
