// What splitting by partitions and by tags share.
#pragma once

#include "fxjit/fx/split_module.h"

namespace fxjit::inline v0::fx {

inline void copy_meta(const Node& from, Node* to) {
  if (const NodeMeta* meta = from.meta_if_any()) to->meta().copy_from(*meta);
  to->set_tensor_type(from.tensor_type());
}

// The graphs of a split as modules that share the attributes of `module`; see split_module.
GraphModuleRef assemble_split(const GraphModule& module, const SplitGraph& split, TargetMap* qualname_map);

}  // namespace fxjit::inline v0::fx
