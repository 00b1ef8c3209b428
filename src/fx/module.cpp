#include "fxjit/fx/module.h"

#include <algorithm>
#include <unordered_set>

#include "fx/paths.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

ObjectRef Module::attribute(std::string_view name) const {
  for (const Attribute& a : attributes()) {
    if (a.name == name) return a.value;
  }
  return nullptr;
}

std::optional<AttributeKind> Module::attribute_kind(std::string_view name) const {
  for (const Attribute& a : attributes()) {
    if (a.name == name) return a.kind;
  }
  return std::nullopt;
}

void Module::set_attribute(std::string_view name, ObjectRef, AttributeKind) {
  throw NotImplementedError(concat(class_name(), " takes no attribute '", name, "'"));
}

bool Module::delete_attribute(std::string_view) { return false; }

Argument Module::forward(Tracer&, std::span<const Argument>, const Argument&) {
  throw NotImplementedError(concat("Module [", class_name(), "] has no \"forward\" that can be traced"));
}

Value Module::call(std::span<const Value>, const Value&) {
  throw NotImplementedError(concat("Module [", class_name(), "] cannot be called on values"));
}

bool Module::is_standard() const {
  const std::string name = class_name();
  for (std::string_view prefix : {"torch.nn.", "torch.ao.nn.", "torch::nn::"}) {
    if (name.starts_with(prefix)) return !name.ends_with("Sequential") && !name.ends_with("SequentialImpl");
  }
  return false;
}

// ---- BasicModule

namespace {
auto place(std::vector<Attribute>& attributes, std::string_view name) {
  return std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == name; });
}
}  // namespace

ObjectRef BasicModule::attribute(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  return it == index_.end() ? nullptr : attributes_[it->second].value;
}

std::optional<AttributeKind> BasicModule::attribute_kind(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  if (it == index_.end()) return std::nullopt;
  return attributes_[it->second].kind;
}

void BasicModule::set_attribute(std::string_view name, ObjectRef value, AttributeKind kind) {
  if (name.empty() || name.find('.') != name.npos) throw KeyError(concat("'", name, "' is no name of an attribute"));
  if (!value) throw TypeError(concat("attribute '", name, "' of ", class_name_, " got no value"));
  const auto [it, fresh] = index_.emplace(name, attributes_.size());
  if (fresh) {
    attributes_.push_back({std::string(name), std::move(value), kind});
  } else {
    attributes_[it->second].value = std::move(value);
    attributes_[it->second].kind = kind;
  }
  version_.fetch_add(1, std::memory_order_release);
}

bool BasicModule::delete_attribute(std::string_view name) {
  const auto it = place(attributes_, name);
  if (it == attributes_.end()) return false;
  attributes_.erase(it);
  index_.clear();
  for (size_t i = 0; i < attributes_.size(); ++i) index_.emplace(attributes_[i].name, i);
  version_.fetch_add(1, std::memory_order_release);
  return true;
}

void BasicModule::traverse(ObjectVisitor& visitor) const {
  for (const Attribute& a : attributes_) visitor.object(*a.value);
}

// ---- Paths

ObjectRef find_attribute(const Module& root, std::string_view path) {
  if (path.empty()) return ObjectRef(const_cast<Module*>(&root));
  // No reference to the root itself: it may be under construction.
  const Module* at = &root;
  ObjectRef found;
  for (std::string_view atom : support::split(path, '.')) {
    if (!at) return nullptr;
    found = at->attribute(atom);
    if (!found) return nullptr;
    at = found->object_kind() == ObjectKind::Module ? dynamic_cast<const Module*>(found.get()) : nullptr;
  }
  return found;
}

ModuleRef find_module(const Module& root, std::string_view path) {
  return ref_cast<Module>(find_attribute(root, path));
}

void set_attribute_at(Module& root, std::string_view path, ObjectRef value, AttributeKind kind) {
  const auto [parent, name] = split_last(path);
  Module* at = &root;
  ObjectRef next;
  for (std::string_view atom : support::split(parent, '.')) {
    next = at->attribute(atom);
    if (!next) {
      next = make_ref<BasicModule>("torch.nn.modules.module.Module");
      at->set_attribute(atom, next, AttributeKind::Module);
    }
    at = next->object_kind() == ObjectKind::Module ? dynamic_cast<Module*>(next.get()) : nullptr;
    if (!at) throw TypeError(concat("'", path, "' leads through '", atom, "', which is a ", next->type_name()));
  }
  at->set_attribute(name, std::move(value), kind);
}

bool delete_attribute_at(Module& root, std::string_view path) {
  const auto [parent, name] = split_last(path);
  if (parent.empty()) return root.delete_attribute(name);
  const ModuleRef at = find_module(root, parent);
  return at && at->delete_attribute(name);
}

// ---- Walks

namespace {

using Seen = std::unordered_set<const void*>;

void collect_modules(const ModuleRef& m, const std::string& path, Seen& seen,
                     std::vector<std::pair<std::string, ModuleRef>>& out) {
  if (!seen.insert(m->identity()).second) return;
  out.emplace_back(path, m);
  for (const Attribute& a : m->attributes()) {
    if (a.kind != AttributeKind::Module) continue;
    if (const auto child = ref_cast<Module>(a.value)) {
      collect_modules(child, path.empty() ? a.name : path + "." + a.name, seen, out);
    }
  }
}

}  // namespace

std::vector<std::pair<std::string, ModuleRef>> named_modules(const ModuleRef& root) {
  Seen seen;
  std::vector<std::pair<std::string, ModuleRef>> out;
  collect_modules(root, "", seen, out);
  return out;
}

std::vector<Attribute> named_attributes(const ModuleRef& root) {
  Seen seen;
  std::vector<Attribute> out;
  for (const auto& [path, module] : named_modules(root)) {
    for (Attribute& a : module->attributes()) {
      if (a.kind == AttributeKind::Module || !seen.insert(a.value->identity()).second) continue;
      if (!path.empty()) a.name = path + "." + a.name;
      out.push_back(std::move(a));
    }
  }
  return out;
}

}  // namespace fxjit::inline v0::fx
