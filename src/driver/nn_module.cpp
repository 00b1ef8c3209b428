#include "driver/front.h"
#include "fxjit/nn.h"
#include "support/errors.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0 {

using support::concat;

namespace {

std::string without_impl(std::string name) {
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

fx::Ref<fx::BasicModule> tree_of_attributes(const detail::ModuleTree& tree, std::string class_name) {
  auto root = fx::make_ref<fx::BasicModule>(std::move(class_name));
  for (const detail::NamedSubmodule& m : tree.submodules) {
    fx::set_attribute_at(*root, m.path, fx::make_ref<fx::BasicModule>(without_impl(m.class_name)),
                         fx::AttributeKind::Module);
  }
  for (const detail::NamedTensor& a : tree.attributes) {
    fx::set_attribute_at(*root, a.name, fx::make_ref<torch_::TensorObject>(a.tensor, a.is_parameter),
                         a.is_parameter ? fx::AttributeKind::Parameter : fx::AttributeKind::Buffer);
  }
  return root;
}

}  // namespace

NnModule::NnModule(std::unique_ptr<detail::ExampleSource> source) : source_(std::move(source)) {}
NnModule::~NnModule() = default;

std::string NnModule::class_name() const { return without_impl(source_->name()); }

fx::Ref<fx::BasicModule> NnModule::current(uint64_t* version) const {
  std::lock_guard lock(mutex_);
  State& s = state_;
  if (!s.tree || !s.tree->held()) {
    s.tree.reset();  // references of ours to what was there before must not be counted
    s.tree = source_->tree();
    s.attributes = tree_of_attributes(*s.tree, class_name());
    s.flags = s.tree->flags();
    ++s.version;
  } else if (const uint64_t flags = s.tree->flags(); flags != s.flags) {
    s.flags = flags;
    ++s.version;
  }
  if (version) *version = s.version;
  return s.attributes;
}

std::vector<fx::Attribute> NnModule::attributes() const { return current()->attributes(); }
fx::ObjectRef NnModule::attribute(std::string_view name) const { return current()->attribute(name); }
std::optional<fx::AttributeKind> NnModule::attribute_kind(std::string_view name) const {
  return current()->attribute_kind(name);
}

uint64_t NnModule::attributes_version() const {
  uint64_t version = 0;
  current(&version);
  return version;
}

std::optional<fx::Signature> NnModule::signature() const { return fx::default_signature(source_->arity()); }

fx::Argument NnModule::forward(fx::Tracer&, std::span<const fx::Argument>, const fx::Argument&) {
  throw NotImplementedError(
      concat("Module [", class_name(), "] computes on tensors and cannot be traced through: make ",
             "it a leaf (is_leaf_module), record it by example (fxjit::record), or write it as a ", "fxjit::Module"));
}

fx::Value NnModule::call(std::span<const fx::Value> args, const fx::Value& kwargs) {
  if (!kwargs.is_none() && kwargs.size() > 0)
    throw TypeError(concat(class_name(), " is a C++ module and takes no keyword arguments"));
  if (args.size() != source_->arity()) {
    throw TypeError(
        concat(class_name(), " takes ", source_->arity(), " tensors but ", args.size(), " values were given"));
  }
  std::vector<at::Tensor> tensors;
  for (const fx::Value& v : args) tensors.push_back(to_tensor(v));
  detail::CallResult r;
  r.structure = source_->run(tensors, r.tensors);
  return driver::build_value(r);
}

fx::Tracer& Submodule::tracer_of(const fx::Proxy& x) {
  if (auto* tracer = dynamic_cast<fx::Tracer*>(&x.tracer())) return *tracer;
  throw TypeError("a module was called with a Proxy whose tracer knows no modules; use a fx::Tracer");
}

at::Tensor Submodule::call(std::initializer_list<fx::Value> args) const {
  return to_tensor(module_->call(std::span(args.begin(), args.size()), {}));
}

}  // namespace fxjit::inline v0
