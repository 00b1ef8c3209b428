#include "driver/graph_inputs.h"

#include <unordered_set>

#include "fxjit/driver/example.h"
#include "fxjit/nn.h"
#include "support/format.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::driver {
namespace {

class Mark final : public fx::Object {
 public:
  std::string type_name() const override { return "torch.Tensor"; }
};

const fx::Value& tensor_mark() {
  static const fx::Value& mark = *new fx::Value(fx::make_ref<Mark>());
  return mark;
}

class AttributeReader {
 public:
  AttributeReader(const fx::GraphModule& root, GraphAttributes& out) : root_(root), out_(out) {}

  void read(std::string_view path) {
    if (!done_.insert(std::string(path)).second) return;
    // Each module on the path decides where it leads.
    owner(fx::ModuleRef(const_cast<fx::GraphModule*>(&root_)));
    for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1))
      if (auto m = fx::find_module(root_, path.substr(0, dot))) owner(m);
    const fx::ObjectRef value = fx::find_attribute(root_, path);
    if (!value) return;  // the call raises
    if (auto m = fx::ref_cast<fx::Module>(value)) {
      for (const auto& [name, inner] : fx::named_modules(m)) owner(inner);
      for (const fx::Attribute& a : fx::named_attributes(m)) add(support::concat(path, ".", a.name), a.value);
    } else {
      add(std::string(path), value);
    }
  }

 private:
  void owner(const fx::ModuleRef& m) {
    if (!owners_.insert(m->identity()).second) return;
    const uint64_t version = m->attributes_version();
    out_.always_look |= version == 0;
    if (dynamic_cast<const NnModule*>(m.get())) out_.programs.push_back(version);
    out_.owners.push_back({m, version});
  }
  void add(std::string path, const fx::ObjectRef& value) {
    at::Tensor t = torch_::as_tensor(fx::Value(value));
    if (!t.defined() || !tensors_.insert(t.unsafeGetTensorImpl()).second) return;
    out_.paths.push_back(std::move(path));
    out_.tensors.push_back(std::move(t));
  }

  const fx::GraphModule& root_;
  GraphAttributes& out_;
  std::unordered_set<std::string> done_;
  std::unordered_set<const void*> owners_, tensors_;
};

}  // namespace

GraphArguments take_apart(std::span<const fx::Value> bound) {
  GraphArguments a;
  std::vector<fx::Value> keys;
  for (const fx::Value& v : bound) {
    if (at::Tensor t = torch_::as_tensor(v); t.defined()) {
      a.tensors.push_back(std::move(t));
      keys.push_back(tensor_mark());
      continue;
    }
    a.plain = false;
    if (!v.contains_object() && !v.is_object()) {
      keys.push_back(v);
      continue;
    }
    keys.push_back(fx::map_aggregate(v, [&](const fx::Value& leaf) -> fx::Value {
      if (!leaf.is_object()) return leaf;
      at::Tensor t = torch_::as_tensor(leaf);
      if (!t.defined()) {
        a.problem = "an argument holds a " + leaf.type_name();
        return {};
      }
      a.tensors.push_back(std::move(t));
      return tensor_mark();
    }));
  }
  a.key = fx::Value::tuple(keys);
  return a;
}

GraphAttributes read_attributes(const fx::GraphModule& root, const fx::Graph& graph) {
  GraphAttributes out;
  AttributeReader reader(root, out);
  for (const fx::Node* n : graph.nodes())
    if (n->op() == fx::Opcode::GetAttr || n->op() == fx::Opcode::CallModule) reader.read(n->target_str());
  return out;
}

GraphResult take_result_apart(const fx::Value& result) {
  GraphResult r;
  r.structure = fx::map_aggregate(result, [&](const fx::Value& leaf) -> fx::Value {
    if (leaf.is_none()) return leaf;
    if (!leaf.is_object()) return detail::constant_leaf(leaf);
    at::Tensor t = torch_::as_tensor(leaf);
    if (!t.defined()) {
      r.problem = "the result holds a " + leaf.type_name();
      return {};
    }
    r.tensors.push_back(std::move(t));
    return static_cast<int64_t>(r.tensors.size() - 1);
  });
  return r;
}

}  // namespace fxjit::inline v0::driver
