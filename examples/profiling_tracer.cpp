// Record profiler ranges as nodes: regions of a program stay visible in its graph and in its profile.
#include <ATen/record_function.h>

#include "check.h"
#include "fxjit/fxjit.h"

namespace fx = fxjit::fx;

// A range of a program over Proxies: two nodes, which dead code elimination keeps, since leaving returns nothing.
class Range {
 public:
  Range(const fx::Proxy& x, const char* name)
      : tracer_(x.tracer()), handle_(call("profiler::_record_function_enter_new", {name})) {}
  ~Range() { call("profiler::_record_function_exit._RecordFunction", {handle_}); }

 private:
  fx::Proxy call(const char* op, std::initializer_list<fx::Argument> args) {
    return tracer_.create_proxy(fx::Opcode::CallFunction, fxjit::aten(op), fx::Argument::tuple(args));
  }
  fx::TracerBase& tracer_;
  fx::Proxy handle_;
};

fx::Proxy program(fx::Proxy x) {
  {
    const Range range(x, "first half");
    x = x.sin();
  }
  const Range range(x, "second half");
  return x.cos();
}

std::vector<std::string> profile;  // the user's ranges, as an observer of torch sees them

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& f) {
  profile.emplace_back(f.name());
  return nullptr;
}

int main() {
  const fx::GraphModuleRef module = fx::symbolic_trace(program);
  module->graph().eliminate_dead_code();
  module->recompile();
  std::cout << module->graph().to_string() << "\n";
  const at::Tensor x = at::randn({8});
  at::addThreadLocalCallback(at::RecordFunctionCallback(&note).scopes({at::RecordScope::USER_SCOPE}));
  check(close(fxjit::to_tensor((*module)({x})), x.sin().cos()), "as eager");
  for (const std::string& name : profile) std::cout << "range in the profile: " << name << "\n";
  check(profile == std::vector<std::string>{"first half", "second half"}, "both ranges were entered, in order");
}
