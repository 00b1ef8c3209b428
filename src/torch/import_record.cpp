#include "torch/import_record.h"

#include <algorithm>
#include <set>

#include "ops/number.h"
#include "torch/aten_call.h"
#include "torch/convert.h"
#include "torch/type_import.h"

namespace fxjit::inline v0::torch_ {
namespace {

std::string placeholder_name(std::string path) {
  std::replace_if(path.begin(), path.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return path;
}

class Importer {
 public:
  Importer(const Recorder& recorder, const ImportOptions& options) : recorder_(recorder), options_(options) {
    program_.env = std::make_shared<ShapeEnv>();
    program_.graph = fx::Graph::create();
    nodes_.resize(recorder.values().size());
  }

  Result<TypedProgram> run(std::span<const at::Tensor> outputs) {
    if (std::string obstacle = find_obstacle(recorder_); !obstacle.empty()) return Failure{obstacle};
    if (auto r = import_inputs(); !r) return r.failure();
    import_numbers();
    for (size_t i = 0; i < recorder_.calls().size(); ++i) import_call(i);
    if (!failure_.empty()) return Failure{failure_};
    if (auto r = import_outputs(outputs); !r) return r.failure();
    find_mutations();
    return std::move(program_);
  }

 private:
  const RecordedValue& value(ValueId id) const { return recorder_.values()[static_cast<size_t>(id)]; }
  fx::Node*& node(ValueId id) { return nodes_[static_cast<size_t>(id)]; }

  Result<void> import_inputs();
  Result<void> import_attributes();
  Result<void> import_outputs(std::span<const at::Tensor> outputs);
  void import_numbers();
  void import_call(size_t index);
  fx::Argument argument(const RecordedArg& arg, const c10::Type& type);
  void bind_result(const RecordedCall& call, const RecordedArg& result, fx::Node* n);
  fx::Node* part(fx::Node* whole, size_t i, const RecordedCall& call);
  void find_mutations();
  bool is_read(ValueId id) const { return read_.count(id) > 0; }
  void collect_reads(const RecordedArg& arg);

  const Recorder& recorder_;
  const ImportOptions& options_;
  TypedProgram program_;
  std::vector<fx::Node*> nodes_;  // by value: the node that holds it now
  std::set<ValueId> read_;
  BoundNumbers bound_;
  std::string failure_;
};

void Importer::collect_reads(const RecordedArg& arg) {
  if (arg.kind == RecordedArg::Tensor) read_.insert(arg.value);
  for (const RecordedArg& item : arg.items) collect_reads(item);
}

Result<void> Importer::import_inputs() {
  program_.input_values = recorder_.inputs();
  for (size_t i = 0; i < recorder_.inputs().size(); ++i) {
    ValueId id = recorder_.inputs()[i];
    const TensorInfo& info = value(id).info;
    if (!info.supported) return Failure{"input " + std::to_string(i) + " is " + info.unsupported};
    fx::Node* n = program_.graph->placeholder("x" + std::to_string(i));
    std::span<const uint8_t> dynamic;
    if (i < options_.dynamic_sizes.size()) dynamic = options_.dynamic_sizes[i];
    n->set_tensor_type(import_type(*program_.env, info, static_cast<int32_t>(i), dynamic));
    program_.inputs.push_back(n);
    if (!node(id)) node(id) = n;
  }
  return import_attributes();
}

Result<void> Importer::import_attributes() {
  for (const RecordedCall& call : recorder_.calls())
    for (const RecordedArg& arg : call.args) collect_reads(arg);
  for (const Recorder::AttributeRecord& a : recorder_.attributes()) {
    if (!is_read(a.value)) continue;
    const TensorInfo& info = value(a.value).info;
    if (!info.supported) return Failure{"attribute " + a.path + " is " + info.unsupported};
    fx::Node* n = program_.graph->placeholder(placeholder_name(a.path));
    auto number = static_cast<int32_t>(program_.inputs.size() + program_.attributes.size());
    n->set_tensor_type(import_type(*program_.env, info, number));
    program_.attributes.push_back({a.path, n, a.tensor, a.value});
    node(a.value) = n;
  }
  return {};
}

fx::Argument Importer::argument(const RecordedArg& arg, const c10::Type& type) {
  switch (arg.kind) {
    case RecordedArg::Constant:
      return to_value(arg.constant, type);
    case RecordedArg::Tensor:
      return node(arg.value);
    case RecordedArg::List: {
      std::vector<fx::Argument> items;
      for (const RecordedArg& item : arg.items) items.push_back(argument(item, type));
      return fx::Argument::list(items);
    }
  }
  return {};
}

fx::Node* Importer::part(fx::Node* whole, size_t i, const RecordedCall& call) {
  static const fx::CallableRef getitem = fx::builtin_function("_operator.getitem");
  fx::Node* n = program_.graph->call_function(getitem, fx::Argument::tuple({whole, static_cast<int64_t>(i)}));
  n->meta().set("scope", call.scope);
  return n;
}

void Importer::bind_result(const RecordedCall& call, const RecordedArg& result, fx::Node* n) {
  if (result.kind == RecordedArg::List) {
    for (size_t i = 0; i < result.items.size(); ++i) bind_result(call, result.items[i], part(n, i, call));
    return;
  }
  if (result.kind != RecordedArg::Tensor) return;
  const RecordedValue& v = value(result.value);
  if (!v.info.supported) {
    if (failure_.empty()) failure_ = call.name() + " returns " + v.info.unsupported;
    return;
  }
  n->set_tensor_type(import_type(*program_.env, v.info));
  // An argument handed through is still the old node, unless it was written: then what follows reads this one.
  if (!node(result.value) || (call.flags & kMutates)) node(result.value) = n;
}

void Importer::import_numbers() {
  if (!options_.numbers) return;
  bound_ = bind_numbers(recorder_, *options_.numbers);
  const auto first = static_cast<int32_t>(program_.inputs.size() + program_.attributes.size());
  for (size_t i = 0; i < options_.numbers->numbers.size(); ++i) {
    ProgramNumber n{program_.graph->placeholder("n" + std::to_string(i)), options_.numbers->numbers[i]};
    ops::mark_host_number(n.node, {first + static_cast<int32_t>(i), n.number.is_float ? DType::Float64 : DType::Int64});
    n.baked = bound_.baked[i];
    n.bounded = bound_.bounded[i];
    program_.numbers.push_back(std::move(n));
  }
}

void Importer::import_call(size_t index) {
  const RecordedCall& call = recorder_.calls()[index];
  const auto& schema = call.op.schema().arguments();
  std::vector<fx::Argument> args;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const auto number = bound_.arguments.find({index, i});
    if (number != bound_.arguments.end())
      args.emplace_back(program_.numbers[static_cast<size_t>(number->second)].node);
    else
      args.push_back(argument(call.args[i], *schema[i].real_type()));
  }
  fx::Node* n = program_.graph->call_function(fx::make_ref<AtenCallable>(call.op), fx::Argument::tuple(args));
  n->meta().set("scope", call.scope);
  if (call.flags & kRandom) program_.random = true;
  if (call.results.size() == 1) {
    bind_result(call, call.results[0], n);
  } else {
    for (size_t i = 0; i < call.results.size(); ++i) bind_result(call, call.results[i], part(n, i, call));
  }
}

Result<void> Importer::import_outputs(std::span<const at::Tensor> outputs) {
  std::vector<fx::Argument> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    ProgramOutput out;
    if (outputs[i].defined()) {
      out.value = recorder_.find(outputs[i]);
      if (out.value < 0 || value(out.value).origin == Origin::Unknown)
        return Failure{"result " + std::to_string(i) + " is a tensor of unknown origin"};
      const RecordedValue& v = value(out.value);
      if (v.origin == Origin::Attribute && !node(out.value))
        return Failure{"result " + std::to_string(i) + " is an attribute that the program does not compute with"};
      out.node = node(out.value);
      out.storage = v.storage;
      out.kind = v.origin == Origin::Input       ? ProgramOutput::Input
                 : v.origin == Origin::Attribute ? ProgramOutput::Attribute
                                                 : ProgramOutput::Fresh;
      if (v.origin != Origin::Result) out.index = v.index;
      for (const RecordedValue& other : recorder_.values())
        if (out.kind == ProgramOutput::Fresh && other.origin != Origin::Result && other.storage == v.storage)
          out.kind = ProgramOutput::View;
    } else {
      out.kind = ProgramOutput::None;
    }
    results.push_back(out.node);
    program_.outputs.push_back(out);
  }
  program_.graph->output(fx::Argument::tuple(results));
  return {};
}

void Importer::find_mutations() {
  std::set<int32_t> written;
  for (const RecordedCall& call : recorder_.calls()) {
    const auto& schema = call.op.schema().arguments();
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (!schema[i].alias_info() || !schema[i].alias_info()->isWrite()) continue;
      if (call.args[i].kind == RecordedArg::Tensor) written.insert(value(call.args[i].value).storage);
      for (const RecordedArg& item : call.args[i].items)
        if (item.kind == RecordedArg::Tensor) written.insert(value(item.value).storage);
    }
  }
  std::set<int32_t> seen;
  auto visit = [&](ValueId id, size_t i, std::vector<int32_t>* mutated) {
    int32_t storage = value(id).storage;
    bool alias = !seen.insert(storage).second;
    if (!written.count(storage)) return;
    mutated->push_back(static_cast<int32_t>(i));
    program_.mutates_aliases |= alias;
  };
  for (size_t i = 0; i < program_.inputs.size(); ++i) visit(program_.input_values[i], i, &program_.mutated_inputs);
  for (size_t i = 0; i < program_.attributes.size(); ++i)
    visit(program_.attributes[i].value, i, &program_.mutated_attributes);
}

}  // namespace

Result<TypedProgram> import_record(const Recorder& recorder, std::span<const at::Tensor> outputs,
                                   const ImportOptions& options) {
  return Importer(recorder, options).run(outputs);
}

}  // namespace fxjit::inline v0::torch_
