#include "fx/text_reader.h"

#include <algorithm>
#include <charconv>

#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

void TextReader::fail_at(size_t place, std::string_view what) const {
  const std::string_view before = text_.substr(0, std::min(place, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t begin = before.rfind('\n');
  const size_t column = begin == std::string_view::npos ? before.size() + 1 : before.size() - begin;
  throw ValueError(concat("fx text, line ", line, ", column ", column, ": ", what));
}

void TextReader::expected(std::string_view what) const {
  if (at_end()) fail(concat("expected ", what, ", found the end of the text"));
  if (peek() == '\n') fail(concat("expected ", what, ", found the end of the line"));
  size_t n = 0;
  while (n < rest().size() && n < 20 && is_word_char(rest()[n])) ++n;
  const std::string_view found = rest().substr(0, std::max(n, utf8_length(rest())));
  const bool readable = !found.empty() && static_cast<unsigned char>(found[0]) >= 0x20;
  fail(readable ? concat("expected ", what, ", found '", found, "'") : concat("expected ", what));
}

void TextReader::skip_blanks() {
  while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) ++at_;
  if (!at_end() && peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
}

void TextReader::skip_lines() {
  skip_blanks();
  while (!at_end() && peek() == '\n') {
    ++at_;
    skip_blanks();
  }
}

void TextReader::end_of_line() {
  skip_blanks();
  if (!at_end() && peek() != '\n') expected("the end of the line");
}

bool TextReader::take(char c) {
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  skip_blanks();
  return true;
}

void TextReader::expect(char c) {
  if (!take(c)) expected(concat("'", c, "'"));
}

std::string_view TextReader::word() {
  const size_t begin = at_;
  while (!at_end() && is_word_char(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string_view TextReader::dotted() {
  const size_t begin = at_;
  while (!at_end() && (is_name_char(text_[at_]) || text_[at_] == '.')) ++at_;
  if (at_ == begin) expected("a value");
  return text_.substr(begin, at_ - begin);
}

std::string_view TextReader::expect_word(std::string_view what) {
  const std::string_view w = word();
  if (w.empty()) expected(what);
  return w;
}

int TextReader::hex_digit() {
  const std::string_view digits = "0123456789abcdef";
  const size_t d = digits.find(peek());
  if (at_end() || d == std::string_view::npos) expected("a hexadecimal digit (0 to 9, a to f)");
  ++at_;
  return static_cast<int>(d);
}

std::string TextReader::quoted() {
  if (peek() != '"') expected("a string in double quotes");
  const size_t begin = at_++;
  std::string out;
  while (true) {
    // A run of plain characters at once.
    const size_t end = std::min(text_.find_first_of("\"\\\n", at_), text_.size());
    out += text_.substr(at_, end - at_);
    at_ = end;
    if (at_end() || peek() == '\n') fail_at(begin, "a string without closing quotes: line ends are written as \\n");
    const char c = text_[at_++];
    if (c == '"') return out;
    const char escape = at_end() ? ' ' : text_[at_++];
    if (escape == 'n') {
      out += '\n';
    } else if (escape == 't') {
      out += '\t';
    } else if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'x') {
      const int high = hex_digit();
      out += static_cast<char>(high << 4 | hex_digit());
    } else {
      fail_at(at_ - 2, "escapes are \\n, \\t, \\\", \\\\ and \\x with two hexadecimal digits");
    }
  }
}

std::string TextReader::word_or_quoted(std::string_view what) {
  if (peek() == '"') return quoted();
  return std::string(expect_word(what));
}

std::string TextReader::name(std::string_view what) {
  if (peek() == '"') return quoted();
  const size_t begin = at_;
  while (!at_end() && is_name_char(text_[at_])) ++at_;
  if (at_ == begin) expected(what);
  return std::string(text_.substr(begin, at_ - begin));
}

std::optional<std::string> TextReader::keyword() {
  const size_t begin = at_;
  std::string key;
  if (peek() == '"') {
    key = quoted();
  } else {
    while (!at_end() && is_name_char(text_[at_])) ++at_;
    key = std::string(text_.substr(begin, at_ - begin));
  }
  skip_blanks();
  const bool valid = is_key(key) || (begin < at_ && text_[begin] == '"');
  if (valid && take('=')) return key;
  at_ = begin;
  return std::nullopt;
}

bool TextReader::take_keyword(std::string_view keyword) {
  const std::string_view r = rest();
  if (!r.starts_with(keyword) || (r.size() > keyword.size() && is_name_char(r[keyword.size()]))) return false;
  at_ += keyword.size();
  skip_blanks();
  return true;
}

uint64_t TextReader::bits() {
  if (!rest().starts_with("0x")) expected("0x and 16 hexadecimal digits");
  at_ += 2;
  uint64_t v = 0;
  for (int i = 0; i < 16; ++i) v = v << 4 | static_cast<uint64_t>(hex_digit());
  return v;
}

Argument TextReader::number() {
  const size_t begin = at_;
  const auto part = [](char c) { return is_name_char(c) || c == '.' || c == '-' || c == '+'; };
  while (!at_end() && part(text_[at_])) ++at_;
  const std::string_view text = text_.substr(begin, at_ - begin);
  const char* last = text.data() + text.size();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text.find_first_not_of("-0123456789") == std::string_view::npos) {
    int64_t v = 0;
    const auto [end, error] = std::from_chars(text.data(), last, v);
    if (error == std::errc::result_out_of_range) fail_at(begin, "an integer of more than 64 bits");
    if (error == std::errc() && end == last) return v;
  } else if (text.find_first_of("in") == std::string_view::npos) {  // no infinity, no nan
    double v = 0;
    const auto [end, error] = std::from_chars(text.data(), last, v);
    if (error == std::errc::result_out_of_range) fail_at(begin, "a number beyond the range of a double");
    if (error == std::errc() && end == last) return v;
  }
  fail_at(begin, concat("'", text, "' is no number"));
}

}  // namespace fxjit::inline v0::fx
