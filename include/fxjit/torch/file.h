// GraphModules in files that Python's fxjit.fx.save and load share: docs/file-format.md.
#pragma once

#include <map>
#include <string>

#include "fxjit/fx/graph_module.h"

namespace fxjit::inline v0 {

// Functions of the user that a file may name, by "module:qualname".
using FileGlobals = std::map<std::string, fx::CallableRef, std::less<>>;

// Functions of torch become ATen's operators. Modules of torch.nn are called through ATen where they are one operator
// (linear, convolution, normalisation in eval mode, activations, …); others, and functions that this program does not
// have, raise when they are called. Tensors are on the CPU. ValueError for a file that is damaged, of another version,
// or not of this kind; nothing of it is run.
FXJIT_API fx::GraphModuleRef load(const std::string& path, const FileGlobals& globals = {});

// ValueError for what the format cannot hold. Attributes have to be tensors or modules made of attributes.
FXJIT_API void save(const fx::GraphModuleRef& module, const std::string& path);

}  // namespace fxjit::inline v0
