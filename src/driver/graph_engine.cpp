#include "driver/graph_engine.h"

#include "driver/graph_record.h"
#include "driver/tensor_call.h"
#include "fx/bind.h"
#include "support/errors.h"

namespace fxjit::inline v0::driver {
namespace {

constexpr const char* kGeneric = "generic form";
// Sets of constants beyond this many run the generic form: inputs that change at every call are better tensors.
constexpr size_t kMaxVariants = 8;

std::vector<fx::Value> bind(const fx::Graph& graph, std::span<const fx::Value> args, const fx::Value& kwargs) {
  std::vector<fx::Value> bound;
  for (auto& [node, value] : fx::bind_arguments(graph, args, kwargs)) bound.push_back(std::move(value));
  return bound;
}

}  // namespace

GraphEngine::GraphEngine(Options options) : options_(std::move(options)) {}
GraphEngine::~GraphEngine() = default;

const fx::Graph& GraphEngine::Program::recorded_graph() {
  std::lock_guard lock(mutex);
  if (!recorded) recorded = inline_for_recording(*snapshot->graph);
  return *recorded;
}

GraphEngine::CurrentPtr GraphEngine::current(fx::GraphModule& root) {
  CurrentPtr c = current_.load(std::memory_order_acquire);
  if (c && c->program->snapshot->version == root.version()) return c;
  std::lock_guard lock(build_);
  auto snapshot = root.snapshot();
  c = current_.load();
  if (c && c->program->snapshot == snapshot) return c;
  auto p = std::make_shared<Program>(std::move(snapshot), options_);
  for (const fx::Node* n : p->snapshot->graph->find_nodes(fx::Opcode::Placeholder))
    p->input_names.emplace_back(n->target_str());
  c = std::make_shared<const Current>(Current{std::move(p), {}});
  current_.store(c, std::memory_order_release);
  return c;
}

std::optional<at::Tensor> GraphEngine::try_tensors(fx::GraphModule& root, std::span<c10::TensorImpl* const> in) {
  const CurrentPtr c = current_.load(std::memory_order_acquire);
  if (!c || c->program->snapshot->version != root.version()) return std::nullopt;
  for (const VariantPtr& v : c->variants) {
    if (!v->plain || v->key.size() != in.size() || !v->attributes.current()) continue;
    TensorCall call(*v->function, in, v->attributes.tensors);
    if (!call.run()) return std::nullopt;
    if (call.is_single()) return call.take_single();
    not_single(call.structure());
  }
  return std::nullopt;
}

fx::Value GraphEngine::call(fx::GraphModule& root, std::span<const fx::Value> args, const fx::Value& kwargs) {
  CurrentPtr c;
  const auto find_program = [&] {
    support::fault_point(options_, "capture");
    c = current(root);
  };
  if (given_up_ || !given_up_.attempt(options_, find_program)) {
    const auto snapshot = root.snapshot();
    return interpret_graph(root, *snapshot->graph, bind(*snapshot->graph, args, kwargs));
  }
  Program& p = *c->program;
  const std::vector<fx::Value> bound = bind(*p.snapshot->graph, args, kwargs);
  if (Recording::active()) return interpret_graph(root, *p.snapshot->graph, bound);
  GraphArguments a = take_apart(bound);
  std::string problem = a.problem;
  if (problem.empty()) {
    VariantPtr v;
    const auto find_variant = [&] {
      support::fault_point(options_, "variant");
      v = variant_for(root, *c, a);
    };
    if (!given_up_.attempt(options_, find_variant)) return p.generic.run(root, bound);
    if (v) return run_variant(root, p, *v, a, bound);
    problem = "called with more than " + std::to_string(kMaxVariants) + " sets of arguments that are no tensors";
  }
  note_generic(p, problem);
  return p.generic.run(root, bound);
}

void GraphEngine::note_generic(Program& p, const std::string& reason) {
  {
    std::lock_guard lock(p.mutex);
    ++p.generic_calls;
    const bool known =
        std::any_of(p.reasons.begin(), p.reasons.end(), [&](const CallReport& c) { return c.reason == reason; });
    if (!known) p.reasons.push_back({"", kGeneric, reason});
  }
  if (options_.strict) throw RuntimeError("strict: the call would run in the generic form: " + reason);
}

fx::Value GraphEngine::run_variant(fx::GraphModule& root, Program& p, const Variant& v, const GraphArguments& a,
                                   std::span<const fx::Value> bound) {
  std::vector<c10::TensorImpl*> in;
  for (const at::Tensor& t : a.tensors) in.push_back(t.unsafeGetTensorImpl());
  TensorCall call(*v.function, in, v.attributes.tensors);
  if (call.run()) return build_value(call.result());
  std::vector<at::Tensor> inputs = a.tensors;
  inputs.insert(inputs.end(), v.attributes.tensors.begin(), v.attributes.tensors.end());
  if (decide_miss(*v.function, inputs, kGeneric, warned_) == Miss::Uncompiled) return p.generic.run(root, bound);
  std::unique_lock lock(p.recording, std::try_to_lock);
  if (!lock) {
    v.function->count_generic_call();
    return p.generic.run(root, bound);
  }
  const fx::Graph* graph = nullptr;
  if (!given_up_.attempt(options_, [&] { graph = &p.recorded_graph(); })) return p.generic.run(root, bound);
  Recording recording(v.function, std::move(inputs));
  return record_graph(root, *graph, bound, recording);
}

GraphEngine::VariantPtr GraphEngine::make_variant(const Program& p, const GraphArguments& a,
                                                  GraphAttributes attributes) const {
  auto v = std::make_shared<Variant>();
  v->key = a.key;
  v->plain = a.plain;
  std::vector<std::string> names;
  for (size_t i = 0; i < a.tensors.size(); ++i)
    names.push_back(a.plain ? p.input_names[i] : "tensor " + std::to_string(i));
  for (const std::string& path : attributes.paths) names.push_back("attribute " + path);
  v->attributes = std::move(attributes);
  const size_t count = v->attributes.paths.size();
  v->function = std::make_shared<Function>(options_, Function::Inputs{std::move(names), count, 0});
  v->function->set_capture("the graph of a GraphModule", {});
  return v;
}

// Attributes are read again where something was set or deleted; other tensors under the same paths are new inputs of
// the same function, other paths are another function.
GraphEngine::VariantPtr GraphEngine::variant_for(fx::GraphModule& root, const Current& c, const GraphArguments& a) {
  for (const VariantPtr& v : c.variants)
    if (v->key == a.key && v->attributes.current()) return v;
  GraphAttributes attributes = read_attributes(root, *c.program->snapshot->graph);
  std::lock_guard lock(build_);
  const CurrentPtr now = current_.load();
  const bool published = now && now->program == c.program;  // else the program was replaced meanwhile
  Current next = published ? *now : c;
  auto at =
      std::find_if(next.variants.begin(), next.variants.end(), [&](const VariantPtr& v) { return v->key == a.key; });
  VariantPtr made;
  if (at != next.variants.end() && (*at)->attributes.same_program(attributes)) {
    auto copy = std::make_shared<Variant>(**at);
    copy->attributes = std::move(attributes);
    *at = made = std::move(copy);
  } else if (at != next.variants.end()) {
    *at = made = make_variant(*c.program, a, std::move(attributes));
  } else if (next.variants.size() < kMaxVariants) {
    next.variants.push_back(made = make_variant(*c.program, a, std::move(attributes)));
  } else {
    return nullptr;
  }
  if (published) current_.store(std::make_shared<const Current>(std::move(next)), std::memory_order_release);
  return made;
}

Report GraphEngine::report(fx::GraphModule& root) {
  if (given_up_) {
    Report r;
    r.capture = "the graph of a GraphModule";
    given_up_.add_to(r, kGeneric);
    return r;
  }
  const CurrentPtr c = current(root);
  std::vector<Report> reports;
  for (const VariantPtr& v : c->variants) reports.push_back(v->function->report());
  Report r = merge_reports(reports);
  if (r.capture.empty()) r.capture = "the graph of a GraphModule";
  std::lock_guard lock(c->program->mutex);
  r.fallbacks.insert(r.fallbacks.end(), c->program->reasons.begin(), c->program->reasons.end());
  r.generic_calls += c->program->generic_calls;
  if (std::string why = c->program->generic.problem(); !why.empty()) r.fallbacks.push_back({"", "interpreter", why});
  return r;
}

std::string GraphEngine::code(fx::GraphModule& root) {
  const CurrentPtr c = current(root);
  std::string text = "; ---- generic form ----\n" + c->program->generic.code();
  for (const VariantPtr& v : c->variants) text += "\n" + v->function->code();
  return text;
}

void GraphEngine::reset() { forget(); }

void GraphEngine::forget() {
  std::lock_guard lock(build_);
  current_.store(nullptr, std::memory_order_release);
  given_up_.reset();
}

}  // namespace fxjit::inline v0::driver
