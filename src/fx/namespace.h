// Unique names by torch.fx's rules: tests and users compare names, so they must come out equal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
    const char* text;
    uint32_t size;
    uint32_t hash;
    uint32_t counters = 0;  // place in counters_ + 1; 0: both are 0, as for nearly all names
    bool used = false;
    enum class Reserved : uint8_t { Unknown, No, Yes } reserved = Reserved::Unknown;
    std::string_view name() const { return {text, size}; }
  };
  struct Counters {
    int64_t count = 0;      // the suffix given last for this base (torch.fx's _base_count)
    int64_t watermark = 0;  // base_1 … base_watermark are all used: they need no second look
  };
  using Id = uint32_t;  // place in infos_

  Id entry(std::string_view name);
  Counters& counters(Id id);
  void grow();

  // An open hash table of places, 4 bytes a slot, beside the entries: a name costs one cache miss and no allocation of
  // its own, where unordered_map took a third of the time of tracing.
  support::Arena& arena_;
  std::vector<Info> infos_;  // small: a graph of a million nodes goes through it at each growth
  std::vector<Counters> counters_;
  std::vector<Id> slots_;  // place + 1; 0: free
};

}  // namespace fxjit::inline v0::fx
