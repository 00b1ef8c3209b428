#include "fx/namespace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <unordered_set>

namespace fxjit::inline v0::fx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_identifier(std::string_view s) {
  return !s.empty() && !is_digit(s[0]) && std::all_of(s.begin(), s.end(), is_word);
}

// Names that start at suffix _1: keywords and builtins of Python 3.11, and what torch.fx's generated code imports.
bool is_python_name(std::string_view name) {
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

uint32_t hash_of(std::string_view name) { return static_cast<uint32_t>(std::hash<std::string_view>()(name)); }

struct Parts {
  std::string_view base;
  int64_t number = -1;  // -1: no suffix
  bool exact = true;    // whether the number is written as numbers are given: add_7, not add_07
};

// "add_12" is add and 12; the base is never empty.
Parts split(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) --digits;
  if (digits == name.size() || digits < 2 || name[digits - 1] != '_') return {name};
  int64_t number = 0;
  const auto error = std::from_chars(name.data() + digits, name.data() + name.size(), number).ec;
  // A suffix beyond 18 digits is only ever kept as it is; counting goes on from a number that fits.
  constexpr int64_t kLargest = int64_t{1} << 60;
  if (error != std::errc() || number > kLargest) return {name.substr(0, digits - 1), kLargest, false};
  return {name.substr(0, digits - 1), number, name[digits] != '0'};
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

// A name that may be free, taken apart.
struct Namespace::Candidate {
  std::string_view text;
  Id base;
  int64_t number;  // -1: none, `text` is the base
  bool exact;
};

// Where the name is, or the free slot where it would be.
size_t Namespace::slot_of(std::string_view name, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i] != 0) {
    const Info& info = infos_[slots_[i] - 1];
    if (info.hash == hash && info.name() == name) break;
    i = (i + 1) & mask;
  }
  return i;
}

const Namespace::Info* Namespace::find(std::string_view name) const {
  if (slots_.empty()) return nullptr;
  const Id place = slots_[slot_of(name, hash_of(name))];
  return place ? &infos_[place - 1] : nullptr;
}

Namespace::Id Namespace::entry(std::string_view name) {
  if (2 * (infos_.size() + 1) > slots_.size()) grow();
  const uint32_t hash = hash_of(name);
  const size_t slot = slot_of(name, hash);
  if (slots_[slot] == 0) {
    infos_.push_back({arena_.copy(name).data(), static_cast<uint32_t>(name.size()), hash});
    slots_[slot] = static_cast<Id>(infos_.size());
  }
  return slots_[slot] - 1;
}

void Namespace::grow() {
  slots_.assign(std::max<size_t>(32, 2 * slots_.size()), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t place = 0; place < infos_.size(); ++place) {
    size_t i = infos_[place].hash & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<Id>(place + 1);
  }
}

bool Namespace::is_reserved(Id base) {
  Info& info = infos_[base];
  if (info.reserved == Info::Reserved::Unknown) {
    info.reserved = is_python_name(info.name()) ? Info::Reserved::Yes : Info::Reserved::No;
  }
  return info.reserved == Info::Reserved::Yes;
}

bool Namespace::is_taken(const Candidate& c) {
  Info& base = infos_[c.base];
  if (c.number < 0) return base.used;
  if (c.exact && c.number <= base.watermark) return true;
  if (c.exact && base.scattered == 0) return false;
  const Info* info = find(c.text);
  if (!info || !info->used) return false;
  if (c.exact && c.number == base.watermark + 1) {
    ++base.watermark;
    --base.scattered;
  }
  return true;
}

// Takes a name that is free.
std::string_view Namespace::mark(const Candidate& c) {
  Info& base = infos_[c.base];
  if (c.exact && c.number == base.watermark + 1) {
    base.watermark = c.number;
    return arena_.copy(c.text);
  }
  if (c.exact && c.number > 0) ++base.scattered;
  Info& info = infos_[c.number < 0 ? c.base : entry(c.text)];
  info.used = true;
  return info.name();
}

std::string_view Namespace::take(std::string_view name, bool& again) {
  const Parts parts = split(name);
  const Candidate c{name, entry(parts.base), parts.number, parts.exact};
  again = is_taken(c);
  return again ? arena_.copy(name) : mark(c);
}

std::string_view Namespace::create_name(std::string_view candidate, uint64_t& probes) {
  std::string storage;
  if (!is_identifier(candidate)) {
    storage = sanitized(candidate);
    candidate = storage;
  }
  const Parts parts = split(candidate);
  Candidate c{candidate, entry(parts.base), parts.number, parts.exact};
  bool taken = is_taken(c);
  ++probes;

  int64_t number = parts.number;
  std::string numbered;
  const auto next = [&] {
    std::array<char, 24> digits;
    numbered.assign(parts.base);
    numbered.push_back('_');
    numbered.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
    c = {numbered, c.base, number, true};
    taken = is_taken(c);
    ++probes;
  };
  if (number < 0 || taken) {
    const Info* counted = number < 0 ? &infos_[c.base] : find(candidate);
    number = counted ? counted->count : 0;
    if (parts.number < 0 && is_reserved(c.base)) {  // no reserved name is a numbered one
      ++number;
      next();
    }
  }
  while (taken) {
    number = std::max(number, infos_[c.base].watermark) + 1;
    next();
  }
  infos_[c.base].count = number;
  return mark(c);
}

}  // namespace fxjit::inline v0::fx
