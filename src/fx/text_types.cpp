#include "fx/text_types.h"

#include <algorithm>
#include <limits>

#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

constexpr std::string_view kSourceNames[] = {"size", "stride", "int"};
// A sign that begins another stands behind it.
constexpr std::pair<SymGuard::Rel, std::string_view> kRelations[] = {
    {SymGuard::Eq, "=="}, {SymGuard::Ne, "!="}, {SymGuard::Le, "<="}, {SymGuard::Lt, "<"}};
// Expressions of more operations are not read: whoever walks them later calls itself once for each.
constexpr int kMaxOperations = 1000;

void append_dims(std::string& out, const ShapeEnv& env, const std::vector<Dim>& dims) {
  for (const Dim& d : dims) out += (&d == dims.data() ? "" : ", ") + env.to_string(d);
}

std::string_view relation_text(SymGuard::Rel rel) {
  for (const auto& [r, text] : kRelations) {
    if (r == rel) return text;
  }
  return "?";
}

// Each symbol of a size is greater than 1.
bool is_implied(const ShapeEnv& env, const SymGuard& g) {
  const SymExpr& e = env.expr(g.rhs);
  return g.rel == SymGuard::Lt && env.is_const(g.lhs, 1) && e.kind == SymExpr::Symbol &&
         env.symbols()[e.value].kind == SymSource::Size;
}

std::vector<Dim> symbols_of(const ShapeEnv& env) {
  std::vector<Dim> symbols(env.symbols().size());
  for (Dim d{0}; static_cast<size_t>(d.id) < env.size(); ++d.id) {
    const SymExpr& e = env.expr(d);
    if (e.kind == SymExpr::Symbol) symbols[e.value] = d;
  }
  return symbols;
}

}  // namespace

void append_type(std::string& out, ShapeEnv& env, const TensorType& t) {
  out += to_text(t.dtype);
  out += '[';
  append_dims(out, env, t.sizes);
  out += ']';
  if (t.strides != contiguous_strides(env, t.sizes)) {
    out += " (";
    append_dims(out, env, t.strides);
    out += ')';
  }
  const bool marks[] = {t.device == DeviceKind::CUDA, t.device == DeviceKind::Meta, t.device == DeviceKind::Other,
                        t.requires_grad, t.is_wrapped_number};
  for (size_t i = 0; i < std::size(marks); ++i) {
    if (marks[i]) out += concat(" ", kTypeMarks[i]);
  }
}

void append_symbols(std::string& out, const ShapeEnv& env) {
  for (Dim d : symbols_of(env)) {
    const SymSource& s = env.symbols()[env.expr(d).value];
    out += concat("symbol ", env.to_string(d), " : ", kSourceNames[s.kind], "(", s.input);
    if (s.kind != SymSource::Int) out += concat(", ", s.dim);
    out += concat(") = ", env.hint(d), "\n");
  }
  for (const SymGuard& g : env.guards()) {
    if (is_implied(env, g)) continue;
    out += concat("guard ", env.to_string(g.lhs), " ", relation_text(g.rel), " ", env.to_string(g.rhs), "\n");
  }
}

void TypeParser::symbol() {
  const size_t place = in_.place();
  const std::string name = in_.name("the name of a symbol");
  in_.skip_blanks();
  in_.expect(':');
  const size_t source_place = in_.place();
  const auto* kind = std::find(std::begin(kSourceNames), std::end(kSourceNames), in_.word());
  if (kind == std::end(kSourceNames))
    in_.fail_at(source_place, "expected size(input, dim), stride(input, dim) or int(input)");
  SymSource source{static_cast<SymSource::Kind>(kind - kSourceNames), 0, 0};
  in_.skip_blanks();
  in_.expect('(');
  source.input = number("the number of an input");
  if (source.kind != SymSource::Int) {
    in_.expect(',');
    source.dim = number("the number of a dimension");
  }
  in_.expect(')');
  in_.expect('=');
  const size_t hint_place = in_.place();
  const int64_t hint = integer("the symbol's value in the example call");
  if (source.kind == SymSource::Size && hint < 2) {
    in_.fail_at(hint_place, "a size that is a symbol is 2 at least: 0 and 1 are written as numbers");
  }
  const size_t index = env_.symbols().size();
  const Dim d = env_.symbol(source, hint);
  if (env_.symbols().size() == index) {
    in_.fail_at(hint_place, concat("sizes of one value are one symbol, here ", env_.to_string(d)));
  }
  if (name != env_.to_string(d)) in_.fail_at(place, concat("the next symbol is ", env_.to_string(d)));
  symbols_.emplace(name, d);
}

void TypeParser::guard() {
  const size_t place = in_.place();
  operations_ = 0;
  const Dim a = dim();
  const auto* relation =
      std::find_if(std::begin(kRelations), std::end(kRelations), [&](const auto& r) { return take(r.second); });
  if (relation == std::end(kRelations)) in_.expected("==, !=, <= or <");
  const Dim b = dim();
  // Each of these records the relation that holds.
  const bool holds = relation->first == SymGuard::Eq   ? env_.guard_eq(a, b)
                     : relation->first == SymGuard::Ne ? !env_.guard_eq(a, b)
                     : relation->first == SymGuard::Lt ? env_.guard_lt(a, b)
                                                       : env_.guard_le(a, b);
  if (!holds) in_.fail_at(place, "the symbols' values do not fulfil this");
}

TensorTypePtr TypeParser::type() {
  const size_t place = in_.place();
  const std::string_view word = in_.word();
  std::optional<DType> dtype;
#define FXJIT_DTYPE(name, value, text, bytes, kind) \
  if (word == text) dtype = DType::name;
  FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  if (!dtype) in_.fail_at(place, "expected the type of a tensor: f32[s0, 8] (8, 1)");
  auto t = std::make_shared<TensorType>();
  t->dtype = *dtype;
  in_.expect('[');
  const size_t sizes_place = in_.place();
  t->sizes = dims(']');
  for (Dim d : t->sizes) {
    if (env_.hint(d) < 0) in_.fail_at(sizes_place, concat("the size ", env_.to_string(d), " is negative"));
  }
  const size_t strides_place = in_.place();
  t->strides = in_.take('(') ? dims(')') : contiguous_strides(env_, t->sizes);
  if (t->strides.size() != t->sizes.size()) in_.fail_at(strides_place, "as many strides as sizes are needed");
  bool marks[std::size(kTypeMarks)];
  for (size_t i = 0; i < std::size(kTypeMarks); ++i) marks[i] = in_.take_keyword(kTypeMarks[i]);
  if (marks[0] + marks[1] + marks[2] > 1) in_.fail("a tensor is on one device");
  t->device = marks[0]   ? DeviceKind::CUDA
              : marks[1] ? DeviceKind::Meta
              : marks[2] ? DeviceKind::Other
                         : DeviceKind::CPU;
  t->requires_grad = marks[3];
  t->is_wrapped_number = marks[4];
  return t;
}

std::vector<Dim> TypeParser::dims(char close) {
  std::vector<Dim> out;
  bool more = true;
  while (!in_.take(close)) {
    if (!more) in_.expected(concat("',' or '", close, "'"));
    operations_ = 0;
    out.push_back(dim());
    more = in_.take(',');
  }
  return out;
}

Dim TypeParser::dim() {
  if (++depth_ > kMaxTextDepth) in_.fail(concat("a size is nested deeper than ", kMaxTextDepth));
  Dim d = product();
  while (take("+")) {
    count();
    d = env_.add(d, product());
  }
  --depth_;
  return d;
}

Dim TypeParser::product() {
  Dim d = operand();
  while (true) {
    const size_t place = in_.place();
    if (take("*")) {
      d = env_.mul(d, operand());
    } else if (take("//")) {
      d = env_.floordiv(d, checked(operand(), place));
    } else if (take("%")) {
      d = env_.mod(d, checked(operand(), place));
    } else {
      return d;
    }
    count();
  }
}

Dim TypeParser::operand() {
  const char c = in_.peek();
  if (c == '-' || (c >= '0' && c <= '9')) return env_.constant(integer("a size"));
  if (in_.take('(')) {
    const Dim d = dim();
    in_.expect(')');
    return d;
  }
  const size_t place = in_.place();
  const std::string name = in_.name("a size");
  in_.skip_blanks();
  if (name == "max" && in_.take('(')) {
    count();
    const Dim a = dim();
    in_.expect(',');
    const Dim b = dim();
    in_.expect(')');
    return env_.max(a, b);
  }
  const auto it = symbols_.find(name);
  if (it == symbols_.end()) in_.fail_at(place, concat("there is no symbol ", name, " before this line"));
  return it->second;
}

Dim TypeParser::checked(Dim divisor, size_t place) const {
  if (env_.is_const(divisor, 0)) in_.fail_at(place, "a size is divided by 0");
  return divisor;
}

// True where the sign stands here; it and the blanks behind it are taken.
bool TypeParser::take(std::string_view sign) {
  if (!in_.rest().starts_with(sign)) return false;
  in_.skip(sign.size());
  in_.skip_blanks();
  return true;
}

int64_t TypeParser::integer(std::string_view what) {
  const size_t place = in_.place();
  const char c = in_.peek();
  if (c != '-' && (c < '0' || c > '9')) in_.expected(what);
  const Argument v = in_.number();
  if (!v.is_int()) in_.fail_at(place, concat("expected ", what, ", an integer"));
  in_.skip_blanks();
  return v.as_int();
}

int32_t TypeParser::number(std::string_view what) {
  const size_t place = in_.place();
  const int64_t v = integer(what);
  if (v < 0 || v > std::numeric_limits<int32_t>::max()) in_.fail_at(place, concat("expected ", what));
  return static_cast<int32_t>(v);
}

void TypeParser::count() {
  if (++operations_ > kMaxOperations) in_.fail(concat("a size of more than ", kMaxOperations, " operations"));
}

}  // namespace fxjit::inline v0::fx
