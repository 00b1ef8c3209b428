// Characters, words, strings and numbers of the text format, with places for errors.
#pragma once

#include <string>
#include <string_view>

#include "fx/text.h"

namespace fxjit::inline v0::fx {

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  // ValueError "fx text, line 3, column 7: expected …, found …".
  [[noreturn]] void fail(std::string_view what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(size_t place, std::string_view what) const;
  // "expected <what>, found <what is there>"
  [[noreturn]] void expected(std::string_view what) const;

  size_t place() const { return at_; }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\n' : text_[at_]; }
  std::string_view rest() const { return text_.substr(at_); }
  void skip(size_t n) { at_ += n; }
  // Blanks, and a comment up to the end of the line.
  void skip_blanks();
  // Line ends, blank lines and comments.
  void skip_lines();
  void end_of_line();

  // Takes it and the blanks behind it if it is there.
  bool take(char c);
  void expect(char c);
  // A run of word characters, empty if there is none; the blanks behind it stay.
  std::string_view word();
  std::string_view expect_word(std::string_view what);
  std::string quoted();
  // The same without : and *, as a constant is written.
  std::string_view dotted();
  // A word or a string in quotes.
  std::string word_or_quoted(std::string_view what);
  // Letters, digits and _, or a string in quotes: the name of a node.
  std::string name(std::string_view what);
  // key= or "key"=; where there is none nothing is taken.
  std::optional<std::string> keyword();
  // This word of letters, if it is there and ends there.
  bool take_keyword(std::string_view keyword);
  // An Int or Float.
  Argument number();
  // Sixteen hexadecimal digits behind 0x.
  uint64_t bits();

 private:
  int hex_digit();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace fxjit::inline v0::fx
