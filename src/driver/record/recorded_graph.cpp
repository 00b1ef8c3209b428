#include "driver/record/recorded_graph.h"

#include "driver/record/size_finder.h"
#include "fxjit/fx/symbolic_trace.h"
#include "support/errors.h"
#include "torch/aten_call.h"
#include "torch/convert.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::driver {
namespace {

using support::concat;
using torch_::RecordedArg;
using torch_::RecordedCall;
using torch_::ValueId;

class GraphBuilder {
 public:
  GraphBuilder(const ExampleRun& run, const ExampleRun* other, const detail::ModuleTree* tree,
               const RecordOptions& options)
      : run_(run), other_(other), tree_(tree), options_(options) {
    out_.graph = fx::Graph::create();
    out_.root = fx::make_ref<fx::BasicModule>("torch.nn.modules.module.Module");
    nodes_.resize(run.recorder->values().size());
    if (other) sizes_.emplace(run, *other, *out_.graph, [this](ValueId id) { return node_of(id); });
  }

  RecordedGraph build() {
    placeholders();
    const auto& calls = run_.recorder->calls();
    if (other_ && other_->recorder->calls().size() != calls.size()) {
      throw TraceError(concat("the program makes ", calls.size(), " calls of ATen for the first example and ",
                              other_->recorder->calls().size(), " for the second: it branches on sizes"));
    }
    for (call_ = 0; call_ < calls.size(); ++call_) add_call(calls[call_]);
    add_output();
    return std::move(out_);
  }

 private:
  void placeholders();
  void add_call(const RecordedCall& call);
  void add_output();
  fx::Argument argument(const RecordedArg& a, const RecordedArg* b, const c10::Argument& schema);
  fx::Argument constant(const fx::Value& a, const fx::Value& b, const c10::Argument& schema);
  fx::Argument integer(int64_t a, int64_t b, const c10::Argument& schema);
  void bind(const RecordedArg& result, const RecordedArg* other, fx::Node* n);
  fx::Node* node_of(ValueId id);
  fx::Node* attribute(std::string path, const at::Tensor& t, fx::AttributeKind kind);
  fx::Node* stray(ValueId id);
  fx::Node* note(fx::Node* n, ValueId id) {
    out_.info.insert_or_assign(n, run_.value(id).info);
    return n;
  }
  const RecordedCall* other_call() const { return other_ ? &other_->recorder->calls()[call_] : nullptr; }
  std::string where() const { return describe_call(run_, call_); }
  // Two values of one call that are to be the same one.
  void expect_same(ValueId a, ValueId b) const {
    if (a != b) throw TraceError(concat(where(), " reads another tensor for the second example"));
  }

  const ExampleRun& run_;
  const ExampleRun* other_;
  const detail::ModuleTree* tree_;
  const RecordOptions& options_;
  RecordedGraph out_;
  std::optional<SizeFinder> sizes_;
  std::vector<fx::Node*> nodes_;   // by value: the node that holds it now
  std::vector<ValueId> operands_;  // of the current call
  size_t call_ = 0;
  size_t constants_ = 0;
};

void GraphBuilder::placeholders() {
  if (!options_.names.empty() && options_.names.size() != run_.inputs.size()) {
    throw ValueError(
        concat("record got ", options_.names.size(), " names for a program of ", run_.inputs.size(), " parameters"));
  }
  const fx::Signature signature =
      options_.names.empty() ? fx::default_signature(run_.inputs.size()) : fx::named_signature(options_.names);
  for (size_t i = 0; i < run_.inputs.size(); ++i) {
    const ValueId id = run_.recorder->inputs()[i];
    nodes_[static_cast<size_t>(id)] = note(out_.graph->placeholder(signature[i].name), id);
  }
}

fx::Node* GraphBuilder::attribute(std::string path, const at::Tensor& t, fx::AttributeKind kind) {
  const bool is_parameter = kind == fx::AttributeKind::Parameter;
  fx::set_attribute_at(*out_.root, path, fx::make_ref<torch_::TensorObject>(t, is_parameter), kind);
  return out_.graph->get_attr(path);
}

fx::Node* GraphBuilder::node_of(ValueId id) {
  fx::Node*& n = nodes_[static_cast<size_t>(id)];
  if (n) return n;
  const torch_::RecordedValue& v = run_.value(id);
  if (v.origin != torch_::Origin::Attribute) return n = note(stray(id), id);
  const detail::NamedTensor& a = tree_->attributes[static_cast<size_t>(v.index)];
  return n = note(
             attribute(a.name, a.tensor, a.is_parameter ? fx::AttributeKind::Parameter : fx::AttributeKind::Buffer),
             id);
}

fx::Node* GraphBuilder::stray(ValueId id) {
  const at::Tensor t = run_.recorder->tensor(id);
  if (options_.constants && t.defined()) {
    std::string name;
    do name = concat("_tensor_constant", constants_++);
    while (out_.root->attribute(name));
    return attribute(name, t, fx::AttributeKind::Plain);
  }
  const bool in_call = call_ < run_.recorder->calls().size();
  throw TraceError(concat(in_call ? where() + " uses a tensor" : std::string("the program returns a tensor"),
                          " of unknown origin: no input, parameter, buffer or result of ATen. Make it an input, ",
                          "register it with the module, or record with the option `constants`"));
}

fx::Argument GraphBuilder::integer(int64_t a, int64_t b, const c10::Argument& schema) {
  bool ambiguous = false;
  auto e = sizes_->find(a, b, operands_, &ambiguous);
  const std::string text = concat("the argument '", schema.name(), "' of ", where(), " is ", a,
                                  " for the first example and ", b, " for the second");
  if (ambiguous) throw TraceError(concat(text, ", as are two sizes of one input: choose examples where those differ"));
  if (!e) throw TraceError(concat(text, ", and follows from no size of its operands or of the inputs"));
  return *e;
}

fx::Argument GraphBuilder::constant(const fx::Value& a, const fx::Value& b, const c10::Argument& schema) {
  if (a == b) return a;
  if (a.is_int() && b.is_int()) return integer(a.as_int(), b.as_int(), schema);
  if (a.is(fx::ArgumentKind::List) && b.is(fx::ArgumentKind::List) && a.size() == b.size()) {
    std::vector<fx::Argument> items;
    for (size_t i = 0; i < a.size(); ++i) items.push_back(constant(a[i], b[i], schema));
    return fx::Argument::list(items);
  }
  throw TraceError(concat("the argument '", schema.name(), "' of ", where(), " is ", a.repr(),
                          " for the first example and ", b.repr(), " for the second"));
}

fx::Argument GraphBuilder::argument(const RecordedArg& a, const RecordedArg* b, const c10::Argument& schema) {
  if (b && (a.kind != b->kind || a.items.size() != b->items.size()))
    throw TraceError(
        concat("the argument '", schema.name(), "' of ", where(), " is of another kind for the second ", "example"));
  switch (a.kind) {
    case RecordedArg::Constant: {
      const fx::Value v = torch_::to_value(a.constant, *schema.real_type());
      return b ? constant(v, torch_::to_value(b->constant, *schema.real_type()), schema) : v;
    }
    case RecordedArg::Tensor:
      if (b) expect_same(a.value, b->value);
      return node_of(a.value);
    case RecordedArg::List: {
      std::vector<fx::Argument> items;
      for (size_t i = 0; i < a.items.size(); ++i)
        items.push_back(argument(a.items[i], b ? &b->items[i] : nullptr, schema));
      return fx::Argument::list(items);
    }
  }
  FXJIT_UNREACHABLE("an argument of no kind");
}

void GraphBuilder::add_call(const RecordedCall& call) {
  const RecordedCall* other = other_call();
  if (other && other->name() != call.name()) {
    throw TraceError(concat(where(), " is ", other->name(), " for the second example: the program branches on sizes"));
  }
  operands_.clear();
  const auto collect = [&](const RecordedArg& a, auto& self) -> void {
    if (a.kind == RecordedArg::Tensor) operands_.push_back(a.value);
    for (const RecordedArg& item : a.items) self(item, self);
  };
  for (const RecordedArg& a : call.args) collect(a, collect);
  const auto& schema = call.op.schema().arguments();
  std::vector<fx::Argument> args;
  std::vector<fx::DictEntry> kwargs;
  for (size_t i = 0; i < schema.size(); ++i) {
    fx::Argument a = argument(call.args[i], other ? &other->args[i] : nullptr, schema[i]);
    if (!schema[i].kwarg_only()) {
      args.push_back(std::move(a));
    } else if (!schema[i].default_value() ||
               !(torch_::to_value(*schema[i].default_value(), *schema[i].real_type()) == a)) {
      kwargs.push_back({fx::Argument(schema[i].name()), std::move(a)});
    }
  }
  const auto is_default = [&](size_t i) {
    return schema[i].default_value() && torch_::to_value(*schema[i].default_value(), *schema[i].real_type()) == args[i];
  };
  while (!args.empty() && is_default(args.size() - 1)) args.pop_back();
  fx::Node* n = out_.graph->call_function(fx::make_ref<torch_::AtenCallable>(call.op), fx::Argument::tuple(args),
                                          fx::Argument::dict(kwargs));
  const size_t results = call.results.size();
  for (size_t i = 0; i < results; ++i) {
    const RecordedArg* o = other ? &other->results[i] : nullptr;
    if (results == 1) {
      bind(call.results[i], o, n);
    } else {
      bind(call.results[i], o,
           out_.graph->call_function(fx::builtin_function("_operator.getitem"), fx::Argument::tuple({n, i})));
    }
  }
}

// An argument that is handed through is the result from now on: for other inputs the operator may copy.
void GraphBuilder::bind(const RecordedArg& result, const RecordedArg* other, fx::Node* n) {
  if (other && (result.kind != other->kind || result.items.size() != other->items.size()))
    throw TraceError(concat(where(), " returns another number of tensors for the second example"));
  if (result.kind == RecordedArg::Tensor) {
    if (other) expect_same(result.value, other->value);
    nodes_[static_cast<size_t>(result.value)] = note(n, result.value);
  }
  for (size_t i = 0; i < result.items.size(); ++i) {
    bind(result.items[i], other ? &other->items[i] : nullptr,
         out_.graph->call_function(fx::builtin_function("_operator.getitem"), fx::Argument::tuple({n, i})));
  }
}

void GraphBuilder::add_output() {
  if (other_ && other_->outputs.size() != run_.outputs.size())
    throw TraceError("the program returns another number of tensors for the second example");
  std::vector<fx::Node*> results;
  for (size_t i = 0; i < run_.outputs.size(); ++i) {
    const ValueId id = run_.recorder->find(run_.outputs[i]);
    if (id < 0) throw TraceError(concat("result ", i, " of the program is a tensor of unknown origin"));
    if (other_ && other_->recorder->find(other_->outputs[i]) != id)
      throw TraceError(concat("result ", i, " of the program is another tensor for the second example"));
    results.push_back(node_of(id));
  }
  out_.graph->output(fx::map_aggregate(run_.structure, [&](const fx::Value& leaf) -> fx::Argument {
    if (leaf.is_int()) return results[static_cast<size_t>(leaf.as_int())];
    return leaf.is_none() ? leaf : detail::constant_of(leaf);
  }));
}

}  // namespace

RecordedGraph build_recorded_graph(const ExampleRun& run, const ExampleRun* other, const detail::ModuleTree* tree,
                                   const RecordOptions& options) {
  return GraphBuilder(run, other, tree, options).build();
}

bool calls(const fx::Node& n, std::string_view op) {
  if (n.op() != fx::Opcode::CallFunction) return false;
  const std::string_view name = n.callable().qualified_name();
  return name.starts_with(op) && (name.size() == op.size() || name[op.size()] == '.');
}

fx::Node* sole_use(const fx::Argument& a, std::string_view op) {
  fx::Node* n = a.node_or_null();
  return n && n->num_users() == 1 && calls(*n, op) ? n : nullptr;
}

}  // namespace fxjit::inline v0::driver
