// Rare data of a node, made at first use.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::fx {

// Meta that another runtime keeps, e.g. a Python dict. node_copy clones it as copy.copy does.
class FXJIT_API MetaExtension : public Object {
 public:
  virtual Ref<MetaExtension> clone() const = 0;
  virtual bool empty() const = 0;
};

// A small map: nodes carry a handful of entries. Keys in use: stack_trace, nn_module_stack, source_line, from_node, …
class FXJIT_API NodeMeta {
 public:
  const Argument* find(std::string_view key) const;
  void set(std::string_view key, Argument value);
  bool erase(std::string_view key);
  bool empty() const { return entries_.empty() && (!extension || extension->empty()); }
  const std::vector<std::pair<std::string, Argument>>& entries() const { return entries_; }
  void copy_from(const NodeMeta& other);

  Ref<MetaExtension> extension;

 private:
  std::vector<std::pair<std::string, Argument>> entries_;
};

}  // namespace fxjit::inline v0::fx
