#include "fx/transform/effects.h"

#include <algorithm>
#include <array>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::fx {

namespace {

bool is_call(const Node& n) { return n.op() == Opcode::CallFunction || n.op() == Opcode::CallMethod; }

constexpr auto kRandom = std::to_array<std::string_view>({
#define FXJIT_RANDOM(name) #name,
#include "fx/transform/random_names.def"
#undef FXJIT_RANDOM
});
static_assert(std::ranges::is_sorted(kRandom));

bool is_random_name(std::string_view name) {
  name = name.substr(0, name.find('.'));  // an overload: "rand.default"
  return std::ranges::binary_search(kRandom, name);
}

}  // namespace

bool may_write(const Node& n) { return is_call(n) && n.is_impure(false); }

bool is_reproducible_call(const Node& n) {
  if (!is_call(n) || n.is_impure(true)) return false;
  return !is_random_name(n.op() == Opcode::CallMethod ? n.target_str() : n.callable().base_name());
}

}  // namespace fxjit::inline v0::fx
