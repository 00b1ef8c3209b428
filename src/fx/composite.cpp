#include "fx/run_composite.h"
#include "fxjit/fx/wrap.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

Composite::Composite(std::string qualified_name, WrapOptions options)
    : name_(std::move(qualified_name)), options_(options) {}
Composite::~Composite() = default;

void Composite::add_body(const void* key, size_t arity, const std::function<Body()>& make) {
  std::lock_guard lock(mutex_);
  for (const auto& entry : bodies_) {
    if (entry->key == key) return;
  }
  bodies_.push_back(std::make_shared<const Entry>(Entry{key, arity, make()}));
}

Argument Composite::trace_body(TracerBase& tracer, std::span<const Argument> args, const Argument& kwargs) const {
  if (!kwargs.is_none() && kwargs.size() > 0) {
    throw TypeError(concat(name_, "() takes no keyword arguments: a C++ function has no parameter names"));
  }
  std::vector<std::shared_ptr<const Entry>> bodies;  // bodies may call composites, this one included
  {
    std::lock_guard lock(mutex_);
    bodies.assign(bodies_.rbegin(), bodies_.rend());
  }
  for (const auto& entry : bodies) {
    if (entry->arity != args.size()) continue;
    if (auto result = entry->body(tracer, args)) return std::move(*result);
  }
  throw TypeError(concat(name_, "() cannot be traced with arguments ", Argument::tuple(args).to_string(),
                         ": it was recorded with parameters of other types"));
}

Value Composite::call(std::span<const Value> args, const Value& kwargs) const {
  return *run_composite(*this, args, kwargs, nullptr);
}

namespace {

// The body as a graph of its own. Foreign values (`all`: every leaf) are placeholders, the others stay constants.
GraphPtr body_graph(const Composite& f, std::span<const Value> args, const Value& kwargs, bool all,
                    std::vector<Value>& inputs) {
  GraphPtr graph = Graph::create();
  GraphAppendingTracer tracer(*graph);
  std::vector<Argument> lowered;
  for (const Value& v : args) {
    lowered.push_back(map_aggregate(v, [&](const Argument& leaf) {
      if (!all && !leaf.is_object()) return leaf;
      inputs.push_back(leaf);
      return Argument(graph->placeholder(concat("arg", inputs.size() - 1)));
    }));
  }
  graph->output(tracer.create_arg(f.trace_body(tracer, lowered, kwargs)));
  return graph;
}

}  // namespace

std::optional<Value> run_composite(const Callable& f, std::span<const Value> args, const Value& kwargs,
                                   OperatorResolver* resolver) {
  const auto* composite = dynamic_cast<const Composite*>(&f);
  if (!composite) return std::nullopt;
  std::vector<Value> inputs;
  GraphPtr graph;
  try {
    graph = body_graph(*composite, args, kwargs, false, inputs);
  } catch (const TypeError&) {
    // A constant where the body was recorded with a traced value.
    inputs.clear();
    graph = body_graph(*composite, args, kwargs, true, inputs);
  }
  return Interpreter(nullptr, *graph, resolver).run(inputs);
}

// ---- Inlining

namespace {

class BodyTracer final : public GraphAppendingTracer {
 public:
  BodyTracer(Graph& graph, bool recursive) : GraphAppendingTracer(graph), recursive_(recursive) {}
  bool is_leaf_function(const Callable& f) override { return !recursive_ || f.always_leaf(); }

 private:
  bool recursive_;
};

// The item of `result` that `user` takes out of the call, if it does just that.
const Argument* item_taken(const Node* user, const Node* call, const Argument& result) {
  if (!result.is(ArgumentKind::Tuple) && !result.is(ArgumentKind::List) && !result.is(ArgumentKind::NamedTuple)) {
    return nullptr;
  }
  if (user->op() != Opcode::CallFunction || user->callable().qualified_name() != "_operator.getitem") return nullptr;
  const auto args = user->args().items();
  if (args.size() != 2 || args[0].node_or_null() != call || !args[1].is_int()) return nullptr;
  const int64_t n = static_cast<int64_t>(result.size());
  const int64_t i = args[1].as_int() < 0 ? args[1].as_int() + n : args[1].as_int();
  return i >= 0 && i < n ? &result.items()[static_cast<size_t>(i)] : nullptr;
}

}  // namespace

Argument inline_call(Node* call, bool recursive) {
  if (call->op() != Opcode::CallFunction || !call->callable().is_composite()) {
    throw TypeError(concat("inline_call: ", call->name(), " is no call of a composite"));
  }
  Graph& graph = call->graph();
  BodyTracer tracer(graph, recursive);
  const CallableRef f(&call->callable());
  Argument result;
  {
    const InsertScope scope = graph.inserting_before(call);
    result = tracer.create_arg(f->trace_body(tracer, call->args().items(), call->kwargs()));
  }
  for (Node* user : call->users_vector()) {
    if (const Argument* item = item_taken(user, call, result)) {
      user->replace_all_uses_with(*item);
      graph.erase_node(user);
    } else {
      user->replace_input_with(call, result);
    }
  }
  graph.erase_node(call);
  return result;
}

size_t inline_composites(Graph& graph, FunctionRef<bool(const Node&)> filter, bool recursive) {
  size_t inlined = 0;
  for (Node* n : graph.nodes()) {
    if (n->op() != Opcode::CallFunction) continue;
    const Callable& f = n->callable();
    if (!f.is_composite() || f.always_leaf() || (filter && !filter(*n))) continue;
    inline_call(n, recursive);
    ++inlined;
  }
  return inlined;
}

}  // namespace fxjit::inline v0::fx
