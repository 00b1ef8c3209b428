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

  // The view lives as long as the arena. `probes` counts candidates.
  std::string_view create_name(std::string_view candidate, uint64_t& probes);
  // Marks a name that was not asked for; `again` tells whether it was taken already.
  std::string_view take(std::string_view name, bool& again);

 private:
  // A text that is a name or the base of numbered ones. Names that are numbered one after the other, add_1, add_2, …,
  // need no entry: all that is known of them is how far they go.
  struct Info {
    const char* text;
    uint32_t size;
    uint32_t hash;
    int64_t count = 0;       // the suffix given last for this base (torch.fx's _base_count)
    int64_t watermark = 0;   // base_1 … base_watermark are all taken
    uint32_t scattered = 0;  // taken names base_n beyond the watermark, which have entries
    bool used = false;
    enum class Reserved : uint8_t { Unknown, No, Yes } reserved = Reserved::Unknown;
    std::string_view name() const { return {text, size}; }
  };
  using Id = uint32_t;  // place in infos_
  struct Candidate;

  const Info* find(std::string_view name) const;
  Id entry(std::string_view name);
  size_t slot_of(std::string_view name, uint32_t hash) const;
  bool is_reserved(Id base);
  bool is_taken(const Candidate& c);
  std::string_view mark(const Candidate& c);
  void grow();

  // An open hash table of places, 4 bytes a slot, beside the entries.
  support::Arena& arena_;
  std::vector<Info> infos_;
  std::vector<Id> slots_;  // place + 1; 0: free
};

}  // namespace fxjit::inline v0::fx
