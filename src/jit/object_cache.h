// Compiled kernels in a folder, for later processes: the option `cache`.
#pragma once

#include <optional>
#include <string>

#include "support/result.h"

namespace fxjit::inline v0::jit {

// Files named after a hash of their key, each with its key, so that names may collide. They are written beside and
// renamed: readers see whole files, and of several writers the last one's stays. A damaged file counts as none.
// Thread-safe, process-safe. Any file may be deleted at any time.
class ObjectCache {
 public:
  // Makes the folder (mode 0700) where there is none. Failure where that cannot be, and where others than this user
  // (and root) may write there: what is loaded is run.
  static Result<ObjectCache> open(const std::string& folder);

  // The object kept under `key`.
  std::optional<std::string> load(const std::string& key) const;
  // Failure where it cannot be written; then nothing has changed.
  Result<void> store(const std::string& key, const std::string& object) const;

  // Where `key` is kept.
  std::string path_of(const std::string& key) const;

 private:
  explicit ObjectCache(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace fxjit::inline v0::jit
