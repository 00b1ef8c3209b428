#include "fx/namespace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>

namespace fxjit::inline v0::fx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Names that start at suffix _1: keywords and builtins of Python 3.11, and what torch.fx's generated code imports.
bool is_reserved(std::string_view name) {
  static const std::unordered_set<std::string_view> names{
#include "fx/python_names.def"
  };
  return names.contains(name);
}

// Runs of characters that no identifier holds become one underscore.
std::string sanitized(std::string_view candidate) {
  std::string out;
  for (size_t i = 0; i < candidate.size(); ++i) {
    if (is_word(candidate[i])) {
      out.push_back(candidate[i]);
    } else if (i == 0 || is_word(candidate[i - 1])) {
      out.push_back('_');
    }
  }
  if (out.empty()) out = "_unnamed";
  if (is_digit(out[0])) out.insert(0, 1, '_');
  return out;
}

struct Parts {
  std::string_view base;
  int64_t number = -1;  // -1: no suffix
};

// "add_12" is add and 12; the base is never empty.
Parts split(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) --digits;
  if (digits == name.size() || digits < 2 || name[digits - 1] != '_') return {name};
  int64_t number = 0;
  const auto error = std::from_chars(name.data() + digits, name.data() + name.size(), number).ec;
  // A suffix beyond 18 digits is only ever kept as it is; counting goes on from a number that fits.
  if (error != std::errc() || number > int64_t{1} << 60) number = int64_t{1} << 60;
  return {name.substr(0, digits - 1), number};
}

}  // namespace

std::string snake_case(std::string_view s) {
  std::string out;
  out.reserve(s.size() + 4);
  for (size_t i = 0; i < s.size(); ++i) {
    const bool upper = s[i] >= 'A' && s[i] <= 'Z';
    if (upper && i > 0 && s[i - 1] >= 'a' && s[i - 1] <= 'z') out.push_back('_');
    out.push_back(upper ? static_cast<char>(s[i] - 'A' + 'a') : s[i]);
  }
  return out;
}

std::pair<const std::string_view, Namespace::Info>& Namespace::entry(std::string_view name) {
  const auto it = infos_.find(name);
  if (it != infos_.end()) return *it;
  return *infos_.emplace(arena_.copy(name), Info()).first;
}

std::string_view Namespace::take(std::string_view name) {
  auto& [kept, info] = entry(name);
  info.used = true;
  return kept;
}

std::string_view Namespace::create_name(std::string_view candidate, uint64_t& probes) {
  std::string storage;
  if (candidate.empty() || is_digit(candidate[0]) || !std::all_of(candidate.begin(), candidate.end(), is_word)) {
    storage = sanitized(candidate);
    candidate = storage;
  }
  const Parts parts = split(candidate);
  auto* found = &entry(candidate);
  Info& base = parts.number < 0 ? found->second : entry(parts.base).second;
  ++probes;

  int64_t number = parts.number;
  std::array<char, 24> digits;
  std::string numbered;
  const auto next = [&] {
    numbered.assign(parts.base);
    numbered.push_back('_');
    numbered.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
    found = &entry(numbered);
    ++probes;
  };
  if (number < 0 || found->second.used) {
    number = found->second.count;
    if (is_reserved(candidate)) {
      ++number;
      next();
    }
  }
  while (found->second.used) {
    if (number == base.watermark + 1) base.watermark = number;
    number = std::max(number, base.watermark) + 1;
    next();
  }
  found->second.used = true;
  base.count = number;
  return found->first;
}

}  // namespace fxjit::inline v0::fx
