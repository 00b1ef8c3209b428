// Files of fxjit.fx.load, written.
#include <caffe2/serialize/inline_container.h>

#include <unordered_map>

#include "fxjit/errors.h"
#include "torch/dtype.h"
#include "torch/saved_guards.h"
#include "torch/saved_module.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

using fx::Value;

class Writer {
 public:
  void write(const fx::GraphModuleRef& module, const std::string& path) {
    describe(module);
    const Value format = Value::dict({{"kind", kFileKind}, {"version", kFileVersion}});
    const std::string modules =
        fx::print_text(fx::TextDocument{{{"format", format}, {"modules", Value::list(modules_)}}, graphs_}, &codec_);
    std::vector<Value> rows;
    for (const fx::ObjectRef& t : codec_.tensors) rows.push_back(row_of(*t));
    const std::string tensors = fx::print_text(fx::TextDocument{{{"tensors", Value::list(rows)}}, {}}, &codec_);

    caffe2::serialize::PyTorchStreamWriter archive(path);
    archive.writeRecord("module.fx", modules.data(), modules.size());
    archive.writeRecord("tensors.fx", tensors.data(), tensors.size());
    for (size_t i = 0; i < storages_.size(); ++i) {
      archive.writeRecord("tensors/" + std::to_string(i), storages_[i].data(), storages_[i].nbytes());
    }
    archive.writeEndOfFile();
  }

 private:
  // The number of the module in the file; its children come before it.
  int64_t describe(const fx::ModuleRef& module) {
    const auto [it, added] = numbers_.emplace(module->identity(), -1);
    if (!added) {
      if (it->second < 0) throw ValueError("a module contains itself");
      return it->second;
    }
    const auto gm = fx::ref_cast<fx::GraphModule>(module);
    const auto saved = fx::ref_cast<SavedModule>(gm ? gm->attributes_module() : module);
    std::vector<fx::DictEntry> parameters, buffers, modules;
    for (const fx::Attribute& a : module->attributes()) {
      const Value key(a.name);
      if (a.kind == fx::AttributeKind::Module) {
        modules.push_back({key, describe(fx::ref_cast<fx::Module>(a.value))});
      } else if (!as_tensor(Value(a.value)).defined()) {
        throw ValueError("attribute " + a.name + " of " + module->class_name() + " is no tensor");
      } else if (a.kind == fx::AttributeKind::Parameter) {
        parameters.push_back({key, codec_.number_of(*a.value)});
      } else if (a.kind == fx::AttributeKind::Buffer || !saved) {
        buffers.push_back({key, codec_.number_of(*a.value)});
      }
    }
    if (saved) {
      add_missing(parameters, *saved, "parameters");
      add_missing(buffers, *saved, "buffers");
      add_missing(modules, *saved, "modules");
    }
    std::vector<fx::DictEntry> entry{
        {"class", class_name(*module, gm.get(), saved.get())},
        {"training", saved ? saved->training() : true},
        {"parameters", Value::dict(parameters)},
        {"buffers", Value::dict(buffers)},
        {"not_persistent",
         saved ? entry_at(saved->entry(), "not_persistent", fx::ArgumentKind::List) : Value::list({})},
        {"modules", Value::dict(modules)},
        {"plain", saved ? entry_at(saved->entry(), "plain", fx::ArgumentKind::Dict) : Value::dict({})}};
    if (gm) {
      if (has_guards(gm->graph())) throw ValueError("a graph with guards of its trace is written by Python only");
      const std::string name = std::to_string(graphs_.size());
      graphs_.emplace_back(name, gm->graph_ptr());
      entry.push_back({"graph", name});
    }
    modules_.push_back(Value::dict(entry));
    return numbers_[module->identity()] = static_cast<int64_t>(modules_.size()) - 1;
  }

  // A bias of None is an entry too.
  static void add_missing(std::vector<fx::DictEntry>& entries, const SavedModule& saved, std::string_view table) {
    for (const fx::DictEntry& e : entry_at(saved.entry(), table, fx::ArgumentKind::Dict).entries()) {
      if (e.value.is_none()) entries.push_back(e);
    }
  }

  static std::string class_name(const fx::Module& module, const fx::GraphModule* gm, const SavedModule* saved) {
    if (saved && !gm) return std::string(saved->entry().find(Value("class"))->as_str());
    std::string name = module.class_name();
    if (gm) return name;
    if (name == "fxjit.Module") return "torch.nn.modules.module:Module";
    if (const size_t dot = name.rfind('.'); dot != name.npos) name[dot] = ':';
    return name;
  }

  Value row_of(const fx::Object& object) {
    const at::Tensor original = dynamic_cast<const TensorHandle&>(object).tensor();
    const std::optional<DType> dtype = to_dtype(original.scalar_type());
    if (original.layout() != at::kStrided || !original.device().is_cpu() || !dtype) {
      throw ValueError("only dense tensors on the CPU of the usual element types can be saved");
    }
    const at::Tensor t = original.detach().resolve_conj().resolve_neg();
    const auto [it, added] = storage_numbers_.emplace(t.storage().data(), storages_.size());
    if (added) storages_.push_back(t.storage());
    const auto ints = [](at::IntArrayRef values) {
      std::vector<Value> out(values.begin(), values.end());
      return Value::tuple(out);
    };
    return Value::tuple({*dtype, ints(t.sizes()), ints(t.strides()), t.storage_offset(), it->second,
                         object.object_kind() == fx::ObjectKind::Parameter, original.requires_grad()});
  }

  FileCodec codec_;
  std::vector<Value> modules_;
  std::vector<std::pair<std::string, fx::GraphPtr>> graphs_;
  std::unordered_map<const void*, int64_t> numbers_;
  std::unordered_map<const void*, size_t> storage_numbers_;
  std::vector<c10::Storage> storages_;
};

}  // namespace
}  // namespace fxjit::inline v0::torch_

namespace fxjit::inline v0 {

void save(const fx::GraphModuleRef& module, const std::string& path) { torch_::Writer().write(module, path); }

}  // namespace fxjit::inline v0
