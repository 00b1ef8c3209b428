// Files of fxjit.fx.save, read.
#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>

#include <filesystem>
#include <unordered_map>

#include "fxjit/errors.h"
#include "torch/dtype.h"
#include "torch/method_resolver.h"
#include "torch/saved_guards.h"
#include "torch/saved_module.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

using fx::Value;
using Kind = fx::ArgumentKind;

class Reader {
 public:
  Reader(const std::string& path, const FileGlobals& globals)
      : archive_(path), bytes_(std::filesystem::file_size(path)), codec_(&globals) {}

  fx::GraphModuleRef read() {
    read_tensors();
    const fx::TextDocument d = fx::parse_text(text("module.fx"), &codec_);
    check_format(value_of(d, "format"));
    for (const auto& [name, graph] : d.graphs) {
      adapt_calls(*graph);
      graphs_.emplace(name, graph);
    }
    std::vector<fx::ModuleRef> built;
    for (const Value& entry : value_of(d, "modules").items()) built.push_back(build(entry, built));
    auto outermost = fx::ref_cast<fx::GraphModule>(built.empty() ? nullptr : built.back());
    if (!outermost) throw ValueError("the outermost module is no GraphModule");
    return outermost;
  }

 private:
  // Nothing is compressed: a record that claims to be larger than the file is damaged.
  size_t size_of_record(const std::string& name) {
    if (!archive_.hasRecord(name)) throw ValueError("there is no record " + name);
    const size_t n = archive_.getRecordSize(name);
    if (n > bytes_) throw ValueError("record " + name + " is larger than the file");
    return n;
  }

  std::string text(const std::string& name) {
    std::string out(size_of_record(name), '\0');
    if (!out.empty()) archive_.getRecord(name, out.data(), out.size());
    return out;
  }

  static const Value& value_of(const fx::TextDocument& d, std::string_view name) {
    for (const auto& [key, value] : d.values) {
      if (key == name) return value;
    }
    throw ValueError("there is no value " + std::string(name));
  }

  static void check_format(const Value& format) {
    if (entry_at(format, "kind", Kind::Str).as_str() != kFileKind) throw ValueError("this file holds no GraphModule");
    const int64_t version = entry_at(format, "version", Kind::Int).as_int();
    if (version == kFileVersion || version == kFileVersionWithGuards) return;
    throw ValueError("format " + std::to_string(version) + ": this version of fxjit reads " +
                     std::to_string(kFileVersion) + " and " + std::to_string(kFileVersionWithGuards));
  }

  void read_tensors() {
    const fx::TextDocument d = fx::parse_text(text("tensors.fx"), &codec_);
    std::vector<fx::ObjectRef> tensors;
    for (const Value& row : value_of(d, "tensors").items()) tensors.push_back(read_tensor(row));
    codec_.tensors = std::move(tensors);
  }

  const at::Tensor& storage(int64_t number) {
    at::Tensor& bytes = storages_[number];
    if (bytes.defined()) return bytes;
    const std::string name = "tensors/" + std::to_string(number);
    const size_t n = size_of_record(name);
    bytes = at::empty({static_cast<int64_t>(n)}, at::kByte);
    if (n) archive_.getRecord(name, bytes.data_ptr(), n);
    return bytes;
  }

  static std::vector<int64_t> sizes_of(const Value& v) {
    std::vector<int64_t> out;
    for (const Value& n : v.items()) out.push_back(n.as_int());
    return out;
  }

  // (element type, sizes, strides, offset, storage, is it a parameter, requires grad)
  fx::ObjectRef read_tensor(const Value& row) {
    const c10::ScalarType type = to_scalar_type(row[0].as_dtype());
    const std::vector<int64_t> sizes = sizes_of(row[1]), strides = sizes_of(row[2]);
    const int64_t offset = row[3].as_int();
    const at::Tensor& bytes = storage(row[4].as_int());
    bool overflow = sizes.size() != strides.size() || offset < 0, empty = false;
    int64_t last = offset;
    for (size_t i = 0; !overflow && i < sizes.size(); ++i) {
      overflow = sizes[i] < 0 || strides[i] < 0;
      empty |= sizes[i] == 0;
      int64_t reach = 0;
      overflow |=
          __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last);
    }
    const int64_t capacity = bytes.numel() / static_cast<int64_t>(c10::elementSize(type));
    if (overflow || (!empty && last >= capacity)) throw ValueError("a tensor reaches beyond its data");
    at::Tensor t = at::empty({0}, at::TensorOptions(type)).set_(bytes.storage(), offset, sizes, strides);
    t.requires_grad_(row[6].as_bool());
    return fx::make_ref<TensorObject>(t, row[5].as_bool());
  }

  // What only the functions of torch.nn.functional take.
  static void adapt_calls(fx::Graph& g) {
    for (fx::Node* n : g.nodes()) {
      if (n->op() != fx::Opcode::CallFunction || n->kwargs().size() == 0 || !is_operator(n->callable())) continue;
      std::vector<fx::DictEntry> kept;
      for (const fx::DictEntry& e : n->kwargs().entries()) {
        const std::string_view key = e.key.as_str();
        const bool in_place = key == "inplace" && !e.value.is_none() && e.value == Value(true);
        if (in_place) throw ValueError("node " + std::string(n->name()) + ": inplace=True has no operator in C++");
        if (key != "inplace" && key != "_stacklevel") kept.push_back(e);
      }
      if (kept.size() != n->kwargs().size()) n->set_kwargs(Value::dict(kept));
    }
  }

  template <class T>
  static T& at_index(const Value& i, std::vector<T>& all) {
    if (!i.is_int() || i.as_int() < 0 || i.as_int() >= static_cast<int64_t>(all.size())) {
      throw ValueError("there is no entry " + i.repr() + " before this one");
    }
    return all[static_cast<size_t>(i.as_int())];
  }

  fx::ModuleRef build(const Value& entry, std::vector<fx::ModuleRef>& built) {
    auto module = fx::make_ref<SavedModule>(entry);
    const auto add = [&](std::string_view table, auto& values, fx::AttributeKind kind) {
      for (const fx::DictEntry& e : entry_at(entry, table, Kind::Dict).entries()) {
        if (!e.value.is_none()) module->set_attribute(e.key.as_str(), at_index(e.value, values), kind);
      }
    };
    add("parameters", codec_.tensors, fx::AttributeKind::Parameter);
    add("buffers", codec_.tensors, fx::AttributeKind::Buffer);
    add("modules", built, fx::AttributeKind::Module);
    for (const fx::DictEntry& e : entry_at(entry, "plain", Kind::Dict).entries()) {
      if (!as_tensor(e.value).defined()) continue;
      module->set_attribute(e.key.as_str(), fx::ObjectRef(e.value.object_or_null()), fx::AttributeKind::Plain);
    }
    const Value* graph = entry.find(Value("graph"));
    if (!graph) return module;
    const auto it = graphs_.find(std::string(graph->as_str()));
    if (it == graphs_.end()) throw ValueError("there is no graph " + graph->repr());
    if (const Value* guards = entry.find(Value("guards"))) add_guards(*it->second, *guards);
    return fx::GraphModule::adopt(module, it->second, std::string(entry_at(entry, "class", Kind::Str).as_str()));
  }

  caffe2::serialize::PyTorchStreamReader archive_;
  uintmax_t bytes_;
  FileCodec codec_;
  std::unordered_map<int64_t, at::Tensor> storages_;
  std::unordered_map<std::string, fx::GraphPtr> graphs_;
};

}  // namespace
}  // namespace fxjit::inline v0::torch_

namespace fxjit::inline v0 {

fx::GraphModuleRef load(const std::string& path, const FileGlobals& globals) {
  if (!std::filesystem::is_regular_file(path)) throw ValueError("there is no file " + path);
  try {
    return torch_::Reader(path, globals).read();
  } catch (const std::exception& e) {
    std::string reason = e.what();
    reason.resize(std::min(reason.find('\n'), reason.size()));  // torch adds a stack trace
    throw ValueError(path + " is no file of fxjit, or damaged: " + reason);
  }
}

}  // namespace fxjit::inline v0
