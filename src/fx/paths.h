// Qualified names of attributes.
#pragma once

#include <string_view>
#include <utility>

namespace fxjit::inline v0::fx {

// "a.b.c" as "a.b" and "c"; what has no dot has no parent.
inline std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == path.npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace fxjit::inline v0::fx
