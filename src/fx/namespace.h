// Unique names by torch.fx's rules: tests and users compare names, so they must come out equal.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "support/arena.h"

namespace fxjit::inline v0::fx {

// lower case behind each lower-case letter that an upper-case one follows: "MaxPool" → "max_pool".
std::string snake_case(std::string_view s);

class Namespace {
 public:
  explicit Namespace(support::Arena& arena) : arena_(arena) {}

  // The view lives as long as the arena. `probes` counts look-ups.
  std::string_view create_name(std::string_view candidate, uint64_t& probes);
  // Marks a name that was not asked for.
  std::string_view take(std::string_view name);

 private:
  struct Info {
    int64_t count = 0;      // the suffix given last for this base (torch.fx's _base_count)
    int64_t watermark = 0;  // base_1 … base_watermark are all used: they need no second look
    bool used = false;
  };

  std::pair<const std::string_view, Info>& entry(std::string_view name);

  support::Arena& arena_;
  std::unordered_map<std::string_view, Info> infos_;
};

}  // namespace fxjit::inline v0::fx
