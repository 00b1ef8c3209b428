// FXJIT_DUMP=graph,kernel,llvm,asm,ptx[:dir]: prints the stages of a compilation, to stderr or into files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fxjit/api.h"

namespace fxjit::inline v0::support {

enum class DumpStage : uint8_t { Graph, Kernel, Llvm, Asm, Ptx };

class FXJIT_API Dump {
 public:
  Dump() = default;
  // Parses Options::dump; ValueError for an unknown stage, naming the known ones.
  explicit Dump(std::string_view option);

  bool wants(DumpStage stage) const { return (stages_ >> static_cast<unsigned>(stage)) & 1u; }
  // Writes `text` under a heading to stderr, or to `dir`/NNN-name.ext. A folder that cannot be written is a warning.
  void write(DumpStage stage, std::string_view name, std::string_view text) const;
  const std::string& directory() const { return directory_; }

 private:
  uint32_t stages_ = 0;
  std::string directory_;
};

}  // namespace fxjit::inline v0::support
