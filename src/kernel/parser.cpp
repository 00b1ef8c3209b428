// Reads what printer.cpp writes, blank lines and lines that begin with # aside. Errors name line and column.
#include <bit>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "kernel/kernel.h"
#include "kernel/text.h"
#include "support/errors.h"

namespace fxjit::inline v0::kernel {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Kernel run() {
    bool header = false;
    while (next_line()) {
      if (!header) {
        expect_word("kernel");
        header = true;
      } else {
        parse_statement();
      }
      expect_end();
    }
    if (!header) fail("a kernel begins with the word kernel");
    return std::move(kernel_);
  }

 private:
  // ---- characters ----
  bool next_line() {
    while (next_ < text_.size()) {
      size_t end = std::min(text_.find('\n', next_), text_.size());
      line_ = text_.substr(next_, end - next_);
      next_ = end + 1;
      ++number_;
      at_ = 0;
      skip_blanks();
      if (at_ < line_.size() && line_[at_] != '#') return true;
    }
    return false;
  }

  void skip_blanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(support::concat("kernel text, line ", number_, ", column ", at_ + 1, ": ", what));
  }

  bool peek(char c) const { return at_ < line_.size() && line_[at_] == c; }

  void expect(char c) {
    if (!peek(c)) fail(support::concat("expected '", c, "'"));
    ++at_;
    skip_blanks();
  }

  void expect_end() {
    if (at_ < line_.size()) fail("expected the end of the line");
  }

  std::string_view word() {
    size_t begin = at_;
    auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
    while (at_ < line_.size() && part(line_[at_])) ++at_;
    if (at_ == begin) fail("expected a word");
    std::string_view w = line_.substr(begin, at_ - begin);
    skip_blanks();
    return w;
  }

  void expect_word(std::string_view wanted) {
    size_t begin = at_;
    if (word() != wanted) fail_at(begin, support::concat("expected ", wanted));
  }

  [[noreturn]] void fail_at(size_t column, const std::string& what) {
    at_ = column;
    fail(what);
  }

  // A number behind a letter: b0, s1, a2, %3.
  int32_t reference(char letter) {
    if (!peek(letter)) fail(support::concat("expected ", letter, " and a number"));
    ++at_;
    int32_t value = 0;
    auto [end, error] = std::from_chars(line_.data() + at_, line_.data() + line_.size(), value);
    if (error != std::errc() || value < 0) fail(support::concat("expected a number behind ", letter));
    at_ = static_cast<size_t>(end - line_.data());
    skip_blanks();
    return value;
  }

  DType dtype() {
    size_t begin = at_;
    std::string_view w = word();
#define FXJIT_DTYPE(name, value, text, bytes, kind) \
  if (w == text) return DType::name;
    FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
    fail_at(begin, support::concat("there is no element type ", w));
  }

  template <size_t N>
  int one_of(const std::string_view (&names)[N], const char* what) {
    size_t begin = at_;
    std::string_view w = word();
    for (size_t i = 0; i < N; ++i) {
      if (names[i] == w) return static_cast<int>(i);
    }
    fail_at(begin, support::concat("there is no ", what, " ", w));
  }

  // ---- lines ----
  void parse_statement() {
    if (peek('%')) return parse_expr();
    size_t begin = at_;
    if (peek('b')) return parse_buffer();
    if (peek('s') && line_.substr(at_, 5) != "store") return parse_scalar();
    std::string_view w = word();
    if (w == "axes") return parse_axes();
    if (w == "store") return parse_store();
    fail_at(begin, "expected axes, a buffer, a scalar, an expression or store");
  }

  void parse_axes() {
    static constexpr std::string_view kinds[] = {"parallel", "reduction"};
    while (at_ < line_.size()) {
      if (!kernel_.axes.empty()) expect(',');
      kernel_.axes.push_back(Axis{one_of(kinds, "kind of axis") == 1});
    }
  }

  void expect_next(char letter, size_t expected) {
    size_t begin = at_;
    if (static_cast<size_t>(reference(letter)) != expected) {
      fail_at(begin, support::concat("expected ", letter, expected, ": numbers are consecutive"));
    }
    expect('=');
  }

  void parse_buffer() {
    static constexpr std::string_view directions[] = {"in", "out"};
    expect_next('b', kernel_.buffers.size());
    Buffer b;
    b.output = one_of(directions, "direction") == 1;
    b.dtype = dtype();
    expect('[');
    while (!peek(']')) {
      if (!b.strides.empty()) expect(',');
      b.strides.push_back(static_cast<StrideClass>(one_of(kStrideNames, "stride class")));
    }
    expect(']');
    kernel_.buffers.push_back(std::move(b));
  }

  void parse_scalar() {
    expect_next('s', kernel_.scalars.size());
    kernel_.scalars.push_back(dtype());
  }

  void parse_store() {
    Store s;
    s.buffer = reference('b');
    expect(',');
    s.expr = reference('%');
    kernel_.stores.push_back(s);
  }

  void parse_expr() {
    expect_next('%', kernel_.exprs.size());
    Expr e;
    size_t begin = at_;
    std::string_view w = word();
    std::string_view literal;
    if (w == "load") {
      e.kind = ExprKind::Load;
      e.index = reference('b');
    } else if (w == "scalar") {
      e.kind = ExprKind::Scalar;
      e.index = reference('s');
    } else if (w == "extent") {
      e.kind = ExprKind::Extent;
      e.index = reference('a');
    } else if (w == "const") {
      begin = at_;
      literal = line_.substr(at_, std::min(line_.find(" :", at_), line_.size()) - at_);
      at_ += literal.size();
      skip_blanks();
    } else {
      parse_operation(e, w, begin);
    }
    expect(':');
    e.dtype = dtype();
    if (!literal.empty()) e.bits = constant(literal, e.dtype, begin);
    kernel_.exprs.push_back(e);
  }

  void parse_operation(Expr& e, std::string_view w, size_t begin) {
    int count = 1;
    if (w == "cast") {
      e.kind = ExprKind::Cast;
    } else if (w == "reduce") {
      e.kind = ExprKind::Reduce;
      e.reduce = static_cast<ReduceOp>(one_of(kReduceNames, "reduction"));
    } else if (const ops::OpRow* row = ops::find_name(w)) {
      e.kind = ExprKind::Op;
      e.op = row->id;
      count = row->arity;
    } else {
      fail_at(begin, support::concat("there is no operator ", w));
    }
    for (int i = 0; i < count; ++i) {
      if (i > 0) expect(',');
      e.args[i] = reference('%');
    }
  }

  uint64_t constant(std::string_view literal, DType t, size_t column) {
    const std::string text(literal);
    char* end = nullptr;
    uint64_t bits = 0;
    if (!is_floating(t)) {
      bits = static_cast<uint64_t>(std::strtoll(text.c_str(), &end, 10));
    } else if (text.starts_with("nan(0x") && text.ends_with(")")) {
      bits = std::strtoull(text.c_str() + 4, &end, 16);
      if (end != nullptr && *end == ')') ++end;
    } else {
      bits = std::bit_cast<uint64_t>(std::strtod(text.c_str(), &end));
    }
    if (end == text.c_str() || *end != '\0')
      fail_at(column, support::concat(text, " is no number of type ", to_text(t)));
    return bits;
  }

  std::string_view text_, line_;
  size_t next_ = 0, at_ = 0;
  int number_ = 0;
  Kernel kernel_;
};

}  // namespace

Kernel parse(const std::string& text) { return Parser(text).run(); }

}  // namespace fxjit::inline v0::kernel
