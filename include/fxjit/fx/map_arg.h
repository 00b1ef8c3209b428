// Entries of dicts, and functions over the structure of arguments. Included by argument.h.
#pragma once

#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::fx {

struct DictEntry {
  Argument key, value;
};

// Applies `fn` to each node in `a`, keeping the kinds of the aggregates. Parts without nodes are shared, not copied.
FXJIT_API Argument map_arg(const Argument& a, FunctionRef<Argument(Node*)> fn);
// Applies `fn` to each leaf: everything that is not an aggregate. Dict keys stay.
FXJIT_API Argument map_aggregate(const Argument& a, FunctionRef<Argument(const Argument&)> fn);
// Calls `fn` for each node in `a`, in order, repetitions included.
FXJIT_API void for_each_node(const Argument& a, FunctionRef<void(Node*)> fn);
// Visits each foreign object in `a`.
FXJIT_API void traverse(const Argument& a, ObjectVisitor& visitor);

}  // namespace fxjit::inline v0::fx
