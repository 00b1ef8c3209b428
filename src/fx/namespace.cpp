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

Namespace::Id Namespace::entry(std::string_view name) {
  if (2 * (infos_.size() + 1) > slots_.size()) grow();
  const auto hash = static_cast<uint32_t>(std::hash<std::string_view>()(name));
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) {
      // One byte for the empty name: no two names share an address, which lint counts on.
      const char* text = arena_.copy(name.empty() ? std::string_view("", 1) : name).data();
      infos_.push_back({text, static_cast<uint32_t>(name.size()), hash});
      slots_[i] = static_cast<Id>(infos_.size());
      return slots_[i] - 1;
    }
    const Info& info = infos_[slots_[i] - 1];
    if (info.hash == hash && info.name() == name) return slots_[i] - 1;
  }
}

Namespace::Counters& Namespace::counters(Id id) {
  Info& info = infos_[id];
  if (info.counters == 0) {
    counters_.emplace_back();
    info.counters = static_cast<uint32_t>(counters_.size());
  }
  return counters_[info.counters - 1];
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

std::string_view Namespace::take(std::string_view name) {
  Info& info = infos_[entry(name)];
  info.used = true;
  return info.name();
}

std::string_view Namespace::create_name(std::string_view candidate, uint64_t& probes) {
  std::string storage;
  if (candidate.empty() || is_digit(candidate[0]) || !std::all_of(candidate.begin(), candidate.end(), is_word)) {
    storage = sanitized(candidate);
    candidate = storage;
  }
  const Parts parts = split(candidate);
  Id found = entry(candidate);
  const Id base = parts.number < 0 ? found : entry(parts.base);
  ++probes;

  int64_t number = parts.number;
  std::string numbered;
  const auto next = [&] {
    std::array<char, 24> digits;
    numbered.assign(parts.base);
    numbered.push_back('_');
    numbered.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
    found = entry(numbered);
    ++probes;
  };
  if (number < 0 || infos_[found].used) {
    number = infos_[found].counters ? counters(found).count : 0;
    if (infos_[found].reserved == Info::Reserved::Unknown) {
      infos_[found].reserved = is_reserved(candidate) ? Info::Reserved::Yes : Info::Reserved::No;
    }
    if (infos_[found].reserved == Info::Reserved::Yes) {
      ++number;
      next();
    }
  }
  while (infos_[found].used) {
    int64_t& watermark = counters(base).watermark;
    if (number == watermark + 1) watermark = number;
    number = std::max(number, watermark) + 1;
    next();
  }
  infos_[found].used = true;
  if (number != 0 || infos_[base].counters) counters(base).count = number;
  return infos_[found].name();
}

}  // namespace fxjit::inline v0::fx
