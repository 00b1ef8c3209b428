// Exceptions in a stage of compilation, from each way to compile: results are eager's, the report has the reason, and
// later calls do not try again.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <functional>

#include "driver/graph_front.h"
#include "fxjit/fxjit.h"
#include "helpers.h"
#include "jit/kernel_cache.h"

namespace fxjit {
namespace {

using testing::same;

struct Running {
  std::function<at::Tensor(const at::Tensor&)> call;
  std::function<driver::Report()> explain;
};

template <class T>
auto program(T x) {
  return ((x * 3).softmax(-1) + 1).sigmoid();
}

fx::GraphModuleRef traced() {
  return fx::symbolic_trace([](fx::Proxy x) { return program(x); });
}

Running from(CompiledFunction f) {
  return {[f](const at::Tensor& x) { return f(x); }, [f] { return f.explain(); }};
}

Running function(const Options& options) {
  return from(compile([](at::Tensor x) { return program(x); }, options));
}

Running graph_module(const Options& options) { return from(compile(traced(), options)); }

Running called_graph_module(const Options& options) {
  auto gm = traced();
  auto executor = std::make_shared<driver::GraphExecutor>(options);
  gm->set_executor(executor);
  return {[gm](const at::Tensor& x) { return to_tensor((*gm)({x})); },
          [gm, executor] { return executor->report(*gm); }};
}

struct Entry {
  const char* name;
  Running (*make)(const Options&);
};
constexpr Entry kEntries[] = {
    {"function", function}, {"graph_module", graph_module}, {"called_graph_module", called_graph_module}};

constexpr const char* kStages[] = {"capture",     "record",       "scope",         "observe",   "import",
                                   "infer_types", "canonicalize", "functionalize", "decompose", "fold",
                                   "cse",         "dce",          "fuse",          "plan",      "kernels",
                                   "codegen",     "jit",          "forward",       "link"};

struct Kind {
  const char* suffix;
  const char* text;
};
constexpr Kind kKinds[] = {{"", "a fault on purpose"}, {":memory", "bad_alloc"}, {":other", "a fault on purpose"}};

Options faulty(const std::string& fault) {
  Options options;
  options.verify = false;  // with it bugs of ours are raised
  options.log = "off";
  options.fault = fault;
  return options;
}

class Fault : public ::testing::Test {
 protected:
  c10::NoGradGuard no_grad;
};

TEST_F(Fault, AStageThatThrowsCostsSpeedAndNothingElse) {
  for (const Entry& entry : kEntries)
    for (const char* stage : kStages)
      for (const Kind& kind : kKinds) {
        SCOPED_TRACE(std::string(entry.name) + " " + stage + kind.suffix);
        jit::KernelCache::process().clear();
        const Running f = entry.make(faulty(std::string(stage) + kind.suffix));
        for (int i = 0; i < 3; ++i) {
          const at::Tensor x = at::randn({4, 5});
          EXPECT_TRUE(same(f.call(x), program(x), 1e-6));
        }
        const driver::Report r = f.explain();
        EXPECT_TRUE(r.specialisations.empty());
        EXPECT_LE(r.recorded_calls, 1);
        EXPECT_NE(to_string(r).find(kind.text), std::string::npos) << to_string(r);
      }
}

TEST_F(Fault, WithoutAVariantAGraphModuleRunsItsGenericForm) {
  const Running f = graph_module(faulty("variant"));
  const at::Tensor x = at::randn({4, 5});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f.call(x), program(x), 1e-6));
  EXPECT_NE(to_string(f.explain()).find("a fault on purpose: variant"), std::string::npos) << to_string(f.explain());
}

TEST_F(Fault, WithoutAGenericFormTheGraphIsInterpreted) {
  c10::AutoGradMode grad(true);  // sends calls to the generic form
  for (const Kind& kind : kKinds) {
    const Running f = graph_module(faulty(std::string("generic") + kind.suffix));
    const at::Tensor x = at::randn({4, 5}).requires_grad_();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f.call(x), program(x), 1e-6));
    EXPECT_NE(to_string(f.explain()).find(kind.text), std::string::npos) << to_string(f.explain());
  }
}

TEST_F(Fault, WhoWantsToSeeBugsSeesThem) {
  for (const Entry& entry : kEntries)
    for (const char* stage : {"capture", "record", "fuse", "jit"}) {
      SCOPED_TRACE(std::string(entry.name) + " " + stage);
      jit::KernelCache::process().clear();
      Options options = faulty(stage);
      options.verify = true;
      EXPECT_THROW(entry.make(options).call(at::randn({4, 5})), InternalError);
    }
}

TEST_F(Fault, AfterAResetItIsTriedAgain) {
  auto f = compile([](at::Tensor x) { return program(x); }, faulty("capture"));
  f(at::randn({4, 5}));
  f.reset();
  EXPECT_TRUE(f.explain().fallbacks.empty());
  f(at::randn({4, 5}));
  EXPECT_FALSE(f.explain().fallbacks.empty());
}

}  // namespace
}  // namespace fxjit
