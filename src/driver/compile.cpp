// The pipeline, top to bottom: typed graph, passes, kernels, memory plan, calls, forward.
#include "driver/compile.h"

#include <map>

#include "codegen/forward/specialised_plan.h"
#include "driver/explain.h"
#include "driver/forward_inputs.h"
#include "driver/library_calls.h"
#include "jit/forward_jit.h"
#include "jit/kernel_cache.h"
#include "kernel/kernel_call.h"
#include "passes/pass.h"
#include "support/dump.h"
#include "support/fault.h"
#include "torch/aten_call.h"
#include "torch/host_table.h"

namespace fxjit::inline v0::driver {
namespace {

// What one compilation hands from stage to stage.
struct Compilation {
  torch_::TypedProgram program;
  CompileRequest& request;
  const jit::CpuTarget& target;
  fx::GraphPtr graph;
  codegen::ForwardInputs inputs;
  codegen::SpecialisedPlan plan;
  std::vector<jit::KernelHandle> handles;  // what must stay mapped
  std::vector<fxjit_kernel> kernels;       // by the emitter's callee index
  SpecialisationPtr out = std::make_shared<Specialisation>();

  ShapeEnv& env() { return *program.env; }
};

Result<void> run_passes(Compilation& c) {
  passes::PassContext context{c.program.graph, c.env(), c.request.options, {}};
  auto times = passes::run_passes(context);
  if (!times) return times.failure();
  for (const passes::PassTime& t : *times) c.request.times.add(t.name, t.milliseconds);
  c.out->report.notes = std::move(context.notes);
  c.graph = context.graph;
  return {};
}

// The size from which outputs bypass the cache is a guard: each specialisation has the variant that fits its sizes.
bool wants_nontemporal(Compilation& c, const kernel::KernelCall& call) {
  if (c.request.options.nontemporal_bytes <= 0) return false;
  bool wanted = !call.results.empty();
  for (const TensorTypePtr& r : call.results) {
    auto elements = c.request.options.nontemporal_bytes / static_cast<int64_t>(size_of(r->dtype));
    Dim threshold = c.env().constant(elements);
    if (!c.env().guard_le(threshold, c.env().product(r->sizes))) wanted = false;
  }
  return wanted;
}

void choose_schedules(Compilation& c) {
  for (const fx::Node* n : c.graph->nodes()) {
    const kernel::KernelCall* call = kernel::kernel_call_of(*n);
    if (!call) continue;
    codegen::ScheduleOptions options = codegen::schedule_options(c.target.name);
    options.fast_math = c.request.options.fast_math;
    codegen::KernelChoice choice{codegen::choose_schedule(call->kernel, options), std::nullopt, 0};
    if (wants_nontemporal(c, *call)) {
      options.nontemporal = true;
      codegen::Schedule s = codegen::choose_schedule(call->kernel, options);
      if (s.nontemporal) choice.nontemporal = s, choice.nontemporal_bytes = c.request.options.nontemporal_bytes;
    }
    c.inputs.kernels.emplace(n, choice);
  }
}

Result<void> compile_kernels(Compilation& c) {
  c.kernels.assign(2 * c.plan.steps.size(), nullptr);
  for (size_t step = 0; step < c.plan.steps.size(); ++step) {
    const kernel::KernelCall* call = kernel::kernel_call_of(*c.plan.steps[step].node);
    if (!call) continue;
    const codegen::KernelChoice& choice = c.inputs.kernels.at(c.plan.steps[step].node);
    auto handle = jit::get_kernel(call->kernel, choice.schedule, c.request.options);
    if (!handle) return handle.failure();
    c.kernels[2 * step] = handle->function;
    c.out->report.kernels.push_back(report_kernel(c.env(), *call, *handle));
    c.handles.push_back(*std::move(handle));
    if (!choice.nontemporal) continue;
    auto streaming = jit::get_kernel(call->kernel, *choice.nontemporal, c.request.options);
    if (!streaming) return streaming.failure();
    c.kernels[2 * step + 1] = streaming->function;
    c.out->report.kernels.back().milliseconds += streaming->was_cached ? 0 : streaming->compile_ms;
    c.handles.push_back(*std::move(streaming));
  }
  return {};
}

Result<void> bind_calls(Compilation& c) {
  torch_::HostProgram& host = c.out->program;
  torch_::Binder binder{[&](const fx::Node* n) { return c.plan.slot_of(*n); },
                        [&](const fx::Argument& a) { return symbol_of(c.inputs, a); }};
  host.calls.resize(c.plan.steps.size());
  for (size_t i = 0; i < c.plan.steps.size(); ++i) {
    const codegen::SpecialisedStep& step = c.plan.steps[i];
    if (kernel::kernel_call_of(*step.node)) continue;
    std::vector<int32_t> results;
    for (int32_t v : step.results) results.push_back(c.plan.values[v].index);
    std::string no_library;
    if (auto call = library_call(*step.node, binder, results, &no_library)) {
      c.out->report.library_calls.push_back({std::string(step.node->name()), call->name(), "", scope_of(*step.node)});
      host.calls[i] = std::move(call);
      continue;
    }
    auto call = torch_::AtenCall::bind(*step.node, binder, results);
    if (!call) return call.failure();
    c.out->report.aten_calls.push_back(report_aten_call(*step.node, c.out->report.notes, no_library));
    host.calls[i] = *std::move(call);
  }
  return {};
}

void describe_frame(Compilation& c) {
  torch_::HostProgram& host = c.out->program;
  host.num_slots = c.plan.slots;
  host.num_inputs = c.plan.inputs;
  host.num_symbols = c.plan.symbols;
  std::map<const fx::Node*, int32_t> input_number;
  for (size_t i = 0; i < c.inputs.inputs.size(); ++i) input_number[c.inputs.inputs[i].node] = static_cast<int32_t>(i);
  std::map<const fx::Node*, int32_t> first;
  int32_t k = 0;
  fx::for_each_node(c.graph->output_node()->args(), [&](fx::Node* n) {
    host.owned_results.push_back(c.plan.outputs[static_cast<size_t>(k)].owned);
    if (auto it = input_number.find(n); it != input_number.end())
      c.out->outputs.push_back({OutputSource::Input, it->second});
    else
      c.out->outputs.push_back({OutputSource::Result, first.emplace(n, k).first->second});
    ++k;
  });
  c.out->results = static_cast<size_t>(k);
}

void link(Compilation& c) {
  support::fault_point(c.request.options, "link");
  auto forward = jit::compile_specialised(*c.graph, c.env(), c.inputs, c.plan, c.kernels,
                                          {torch_::specialised_table(), &torch_::requires_grad}, c.target);
  c.out->forward = forward.function;
  c.out->code.push_back(forward.code);
  for (const jit::KernelHandle& h : c.handles) c.out->code.push_back(h.code);
  if (const support::Dump dump(c.request.options.dump); dump.wants(support::DumpStage::Llvm)) {
    dump.write(support::DumpStage::Llvm, "forward", jit::specialised_ir(*c.graph, c.env(), c.inputs, c.plan));
  }
}

}  // namespace

Result<SpecialisationPtr> compile(torch_::TypedProgram program, CompileRequest request) {
  auto target = jit::target_for(request.options);
  if (!target) return target.failure();
  if (program.mutates_aliases) return Failure{"two inputs share memory and one of them is written"};
  Compilation c{std::move(program), request, **target, {}, {}, {}, {}, {}};
  if (auto r = run_passes(c); !r) return r.failure();

  auto stage = [&request](const char* name) {
    support::fault_point(request.options, name);
    return request.times.scope(name);
  };
  {
    auto timed = stage("plan");
    choose_schedules(c);
    list_inputs(c.program, *c.graph, c.request, &c.inputs);
    c.plan = codegen::plan_specialised(*c.graph, c.env(), c.inputs);
  }
  {
    auto timed = stage("kernels");
    if (auto r = compile_kernels(c); !r) return r.failure();
  }
  {
    auto timed = stage("forward");
    if (auto r = bind_calls(c); !r) return r.failure();
    describe_frame(c);
    link(c);
  }
  describe_specialisation(c.env(), c.inputs, request.input_names, &c.out->report);
  for (const auto& [name, ms] : request.times.stages()) c.out->report.stages.push_back({name, ms});
  // The text is made when somebody asks: printing costs more than compiling.
  c.out->print_llvm = [graph = c.graph, env = c.program.env, inputs = c.inputs, plan = c.plan, target = &c.target] {
    return llvm_text(*graph, *env, inputs, plan, *target);
  };
  return c.out;
}

}  // namespace fxjit::inline v0::driver
