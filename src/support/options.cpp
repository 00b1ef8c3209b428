#include "fxjit/options.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "fxjit/errors.h"
#include "support/format.h"

namespace fxjit::inline v0 {

namespace {

std::string to_text(bool v) { return v ? "true" : "false"; }
std::string to_text(int64_t v) { return std::to_string(v); }
std::string to_text(const std::string& v) { return v; }

std::optional<bool> parse_bool(std::string_view text) {
  for (std::string_view yes : {"1", "true", "True", "on", "yes"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"0", "false", "False", "off", "no", ""}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

[[noreturn]] void reject(std::string_view name, std::string_view value, std::string_view wanted) {
  throw ValueError(support::concat("option '", name, "' got ", support::python_repr(value), "; it takes ", wanted));
}

void assign(bool& field, const OptionInfo& info, std::string_view value) {
  const auto parsed = parse_bool(value);
  if (!parsed) reject(info.name, value, "true or false");
  field = *parsed;
}

void assign(int64_t& field, const OptionInfo& info, std::string_view value) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), v);
  if (error != std::errc() || end != value.data() + value.size() || v < 0) {
    reject(info.name, value, "a whole number that is not negative");
  }
  field = v;
}

void assign(std::string& field, const OptionInfo& info, std::string_view value) {
  if (!info.choices.empty()) {
    bool known = false;
    for (std::string_view choice : support::split(info.choices, '|')) known |= choice == value;
    if (!known) reject(info.name, value, "one of " + std::string(info.choices));
  }
  field = std::string(value);
}

// Rows with their texts; built once, never changed.
struct Table {
  std::vector<std::string> texts;
  std::vector<OptionInfo> rows;

  Table() {
    const Options defaults;
    texts.reserve(64);
#define FXJIT_OPTION(Type, name, def, choices, help) \
  add(OptionType::Type, #name, to_text(defaults.name), choices, help);
#include "fxjit/options.def"
#undef FXJIT_OPTION
  }

  void add(OptionType type, std::string_view name, std::string default_text, std::string_view choices,
           std::string_view help) {
    texts.push_back(std::move(default_text));
    const std::string_view default_view = texts.back();
    std::string variable = "FXJIT_";
    for (char c : name) variable.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    texts.push_back(std::move(variable));
    rows.push_back({name, type, default_view, choices, help, texts.back()});
  }
};

const Table& the_table() {
  static const Table table;
  return table;
}

}  // namespace

std::span<const OptionInfo> option_table() { return the_table().rows; }

std::string unknown_option_message(std::string_view name) {
  std::vector<std::string_view> names;
  std::string known;
  for (const OptionInfo& row : option_table()) {
    names.push_back(row.name);
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  std::string message = support::concat("unknown option '", name, "'");
  const std::string_view near = support::nearest(name, names);
  if (!near.empty()) message += support::concat("; did you mean '", near, "'?");
  return message + (near.empty() ? ". Known options: " : " Known options: ") + known;
}

Options Options::from_environment() {
  Options options;
  for (const OptionInfo& row : option_table()) {
    const char* value = std::getenv(std::string(row.variable).c_str());
    if (!value) continue;
    try {
      options.set(row.name, value);
    } catch (Error& e) {
      e.append(support::concat(" (from the environment variable ", row.variable, ")"));
      throw;
    }
  }
  return options;
}

void Options::set(std::string_view name, std::string_view value) {
  const OptionInfo* row = option_table().data();
#define FXJIT_OPTION(Type, option, def, choices, help)     \
  if (name == #option) return assign(option, *row, value); \
  ++row;
#include "fxjit/options.def"
#undef FXJIT_OPTION
  throw TypeError(unknown_option_message(name));
}

std::string Options::get(std::string_view name) const {
#define FXJIT_OPTION(Type, option, def, choices, help) \
  if (name == #option) return to_text(option);
#include "fxjit/options.def"
#undef FXJIT_OPTION
  throw TypeError(unknown_option_message(name));
}

bool Options::skips(std::string_view pass) const {
  for (std::string_view name : support::split(skip, ',')) {
    if (name == pass) return true;
  }
  return false;
}

}  // namespace fxjit::inline v0
