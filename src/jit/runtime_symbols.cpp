#include "jit/cpu_jit.h"
#include "runtime/abi.h"

namespace fxjit::inline v0::jit {

std::span<const NamedAddress> runtime_symbols() {
  static const std::vector<NamedAddress> table = [] {
    size_t count = 0;
    const fxjit_symbol* symbols = fxjit_runtime_symbols(&count);
    std::vector<NamedAddress> entries;
    for (size_t i = 0; i < count; ++i) entries.push_back({symbols[i].name, symbols[i].address});
    return entries;
  }();
  return table;
}

}  // namespace fxjit::inline v0::jit
