// The options of a compilation. One table, options.def, makes the struct, the environment variables, the Python
// keywords and the documentation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fxjit/api.h"

namespace fxjit::inline v0 {

enum class OptionType : uint8_t { Bool, Int, Text };

namespace option_types {
using Bool = bool;
using Int = int64_t;
using Text = std::string;
}  // namespace option_types

struct FXJIT_API Options {
#define FXJIT_OPTION(Type, name, def, choices, help) option_types::Type name = def;
#include "fxjit/options.def"
#undef FXJIT_OPTION

  // The defaults, overridden by the environment (FXJIT_STRICT=1, FXJIT_DUMP=graph …). ValueError names the variable.
  static Options from_environment();

  // Sets an option from text: a Bool is 1/0/true/false/on/off/yes/no. Throws TypeError for an unknown name, naming the
  // nearest one and all known ones, and ValueError for a value that does not fit.
  void set(std::string_view name, std::string_view value);
  // The value as `set` would take it. TypeError for an unknown name.
  std::string get(std::string_view name) const;

  // True if `skip` holds this pass.
  bool skips(std::string_view pass) const;

  bool operator==(const Options&) const = default;
};

struct OptionInfo {
  std::string_view name;
  OptionType type;
  std::string_view default_text;
  std::string_view choices;  // "a|b", or empty
  std::string_view help;
  std::string_view variable;  // "FXJIT_STRICT"
};

// The rows of options.def, in order.
FXJIT_API std::span<const OptionInfo> option_table();

// The text of the error for an unknown option.
FXJIT_API std::string unknown_option_message(std::string_view name);

}  // namespace fxjit::inline v0
