#include "passes/pass.h"

#include "fxjit/errors.h"
#include "fxjit/fx/callable.h"
#include "passes/canonicalize.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/decompose.h"
#include "passes/fold.h"
#include "passes/functionalize.h"
#include "passes/fuse.h"
#include "passes/infer_types.h"
#include "passes/typed_text.h"
#include "support/dump.h"
#include "support/fault.h"
#include "support/format.h"
#include "support/timer.h"

namespace fxjit::inline v0::passes {
namespace {

constexpr Pass kPasses[] = {
#define FXJIT_PASS(name, what) {#name, what, name},
#include "passes/passes.def"
#undef FXJIT_PASS
};

// Without symbolic types behind the inputs nothing says for which sizes a program is right.
constexpr std::string_view kNeeded = "infer_types";

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : kPasses)
    if (pass.name == name) return &pass;
  return nullptr;
}

void check_skips(const Options& options) {
  for (std::string_view name : support::split(options.skip, ',')) {
    if (name.empty()) continue;
    std::string known;
    bool found = false;
    for (const Pass& pass : kPasses) {
      if (pass.name == kNeeded) continue;
      known += (known.empty() ? "" : ", ") + std::string(pass.name);
      found = found || pass.name == name;
    }
    if (found) continue;
    throw ValueError(name == kNeeded
                         ? support::concat("skip: the pass ", name, " cannot be left out; these can: ", known)
                         : support::concat("skip: there is no pass '", name, "'; these can be left out: ", known));
  }
}

Result<std::vector<PassTime>> run_passes(PassContext& context) {
  support::Dump dump(context.options.dump);
  auto show = [&](std::string_view after) {
    if (dump.wants(support::DumpStage::Graph)) dump.write(support::DumpStage::Graph, after, dump_typed(context));
  };
  show("imported");
  if (context.options.verify) verify(context);
  std::vector<PassTime> times;
  for (const Pass& pass : kPasses) {
    if (context.options.skips(pass.name)) continue;
    support::fault_point(context.options, pass.name);
    support::Timer timer;
    Result<bool> changed = pass.run(context);
    if (!changed) return Failure{std::string(pass.name) + ": " + changed.reason()};
    times.push_back({pass.name, timer.milliseconds(), *changed});
    if (*changed) show(pass.name);
    if (context.options.verify) verify(context);
  }
  return times;
}

std::string_view schema_of(const fx::Node& n) {
  return n.op() == fx::Opcode::CallFunction ? n.callable().qualified_name() : std::string_view();
}

bool is_call(const fx::Node& n, std::string_view schema) { return schema_of(n) == schema; }

}  // namespace fxjit::inline v0::passes
