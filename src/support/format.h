// Text: concatenation, numbers and strings as Python writes them, tables, and the nearest of some names.
#pragma once

#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fxjit/api.h"

namespace fxjit::inline v0::support {

inline void append(std::string& out, std::string_view s) { out.append(s); }
inline void append(std::string& out, const char* s) { out.append(s); }
inline void append(std::string& out, char c) { out.push_back(c); }
inline void append(std::string& out, bool b) { out.append(b ? "true" : "false"); }
template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>)
void append(std::string& out, T v) {
  out.append(std::to_string(v));
}
FXJIT_API void append(std::string& out, double v);  // the shortest text that reads back

template <class... Args>
std::string concat(const Args&... args) {
  std::string out;
  (append(out, args), ...);
  return out;
}

// repr(float): "1.0", "1e-05", "inf", "nan".
FXJIT_API std::string python_float(double v);
// repr(str): quotes chosen and escapes written as Python does; invalid UTF-8 bytes as \xNN.
FXJIT_API std::string python_repr(std::string_view s);
FXJIT_API std::string join(std::span<const std::string> parts, std::string_view separator);
FXJIT_API std::vector<std::string_view> split(std::string_view text, char separator);  // without empty parts
// The one of `known` with the smallest edit distance, or empty if none is near.
FXJIT_API std::string_view nearest(std::string_view word, std::span<const std::string_view> known);
// Columns padded to their widest cell, a line of dashes under the headers.
FXJIT_API std::string table(std::span<const std::string> headers, std::span<const std::vector<std::string>> rows);

}  // namespace fxjit::inline v0::support
