// Operators on host values: the shape arithmetic of a graph is computed here when it runs in the interpreter. Values of
// other floors come first (OperatorResolver); what arrives here are numbers and structures.
#include <array>
#include <cmath>
#include <unordered_map>

#include "fxjit/fx/callable.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

namespace {

enum class Builtin : uint8_t {
#define FXJIT_BUILTIN(Id, module, name) Id,
#include "fx/builtin_functions.def"
#undef FXJIT_BUILTIN
};

bool is_number(const Value& v) { return v.is_bool() || v.is_int() || v.is_float(); }
int64_t to_int(const Value& v) { return v.is_bool() ? v.as_bool() : v.as_int(); }

[[noreturn]] void overflow() { throw RuntimeError("integer overflow: host integers of a graph have 64 bits"); }
[[noreturn]] void division_by_zero() { throw RuntimeError("ZeroDivisionError: division by zero"); }

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) division_by_zero();
  if (b == -1) {
    if (a == INT64_MIN) overflow();
    return -a;
  }
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) division_by_zero();
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double floor_mod(double a, double b) {
  if (b == 0) division_by_zero();
  const double r = std::fmod(a, b);
  if (r != 0) return (r < 0) != (b < 0) ? r + b : r;
  return std::copysign(0.0, b);
}

int64_t int_pow(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

std::optional<Value> on_ints(Builtin f, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (f) {
    case Builtin::Add:
      return __builtin_add_overflow(a, b, &r) ? (overflow(), r) : r;
    case Builtin::Sub:
      return __builtin_sub_overflow(a, b, &r) ? (overflow(), r) : r;
    case Builtin::Mul:
      return __builtin_mul_overflow(a, b, &r) ? (overflow(), r) : r;
    case Builtin::FloorDiv:
      return floor_div(a, b);
    case Builtin::Mod:
      return floor_mod(a, b);
    case Builtin::Pow:
      if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
      return int_pow(a, b);
    case Builtin::LShift:
      if (b < 0) throw ValueError("negative shift count");
      if (b > 62 || __builtin_mul_overflow(a, int64_t{1} << b, &r)) overflow();
      return r;
    case Builtin::RShift:
      if (b < 0) throw ValueError("negative shift count");
      return a >> std::min<int64_t>(b, 63);
    case Builtin::And:
      return a & b;
    case Builtin::Or:
      return a | b;
    case Builtin::Xor:
      return a ^ b;
    case Builtin::Eq:
      return a == b;
    case Builtin::Ne:
      return a != b;
    case Builtin::Lt:
      return a < b;
    case Builtin::Gt:
      return a > b;
    case Builtin::Le:
      return a <= b;
    case Builtin::Ge:
      return a >= b;
    case Builtin::TrueDiv:
      if (b == 0) division_by_zero();
      return static_cast<double>(a) / static_cast<double>(b);
    case Builtin::Matmul:
    case Builtin::Neg:
    case Builtin::Pos:
    case Builtin::Invert:
    case Builtin::Abs:
    case Builtin::GetItem:
    case Builtin::SetItem:
    case Builtin::GetAttr:
    case Builtin::Len:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Value> on_floats(Builtin f, double a, double b) {
  if (f == Builtin::Add) return a + b;
  if (f == Builtin::Sub) return a - b;
  if (f == Builtin::Mul) return a * b;
  if (f == Builtin::Pow) return std::pow(a, b);
  if (f == Builtin::Eq) return a == b;
  if (f == Builtin::Ne) return a != b;
  if (f == Builtin::Lt) return a < b;
  if (f == Builtin::Gt) return a > b;
  if (f == Builtin::Le) return a <= b;
  if (f == Builtin::Ge) return a >= b;
  if (f == Builtin::Mod) return floor_mod(a, b);
  if (f != Builtin::TrueDiv && f != Builtin::FloorDiv) return std::nullopt;
  if (b == 0) division_by_zero();
  return f == Builtin::TrueDiv ? a / b : std::floor(a / b);
}

std::optional<Value> on_number(Builtin f, const Value& v) {
  if (v.is_float()) {
    if (f == Builtin::Neg) return -v.as_float();
    if (f == Builtin::Pos) return v;
    if (f == Builtin::Abs) return std::fabs(v.as_float());
    return std::nullopt;
  }
  const int64_t i = to_int(v);
  if (f == Builtin::Invert) return ~i;
  if (f == Builtin::Pos) return i;
  if (f == Builtin::Neg || (f == Builtin::Abs && i < 0)) return i == INT64_MIN ? (overflow(), i) : -i;
  if (f == Builtin::Abs) return i;
  return std::nullopt;
}

bool is_sequence(const Value& v) {
  return v.is(ArgumentKind::List) || v.is(ArgumentKind::Tuple) || v.is(ArgumentKind::NamedTuple);
}

// Python's slice(start, stop, step).indices(n), then the items.
Value slice_of(const Value& v, const Value& s) {
  const int64_t n = static_cast<int64_t>(v.size());
  const int64_t step = s[2].is_none() ? 1 : to_int(s[2]);
  if (step == 0) throw ValueError("slice step cannot be zero");
  const auto clip = [&](const Value& bound, int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    int64_t i = to_int(bound);
    if (i < 0) i += n;
    return std::clamp(i, step < 0 ? int64_t{-1} : int64_t{0}, step < 0 ? n - 1 : n);
  };
  const int64_t start = clip(s[0], step < 0 ? n - 1 : 0), stop = clip(s[1], step < 0 ? -1 : n);
  std::vector<Value> items;
  for (int64_t i = start; step < 0 ? i > stop : i < stop; i += step) items.push_back(v[static_cast<size_t>(i)]);
  return v.is(ArgumentKind::List) ? Value::list(items) : Value::tuple(items);
}

std::optional<Value> get_item(const Value& v, const Value& key) {
  if (v.is(ArgumentKind::Dict)) {
    if (const Value* found = v.find(key)) return *found;
    throw KeyError(key.repr());
  }
  if (!is_sequence(v)) return std::nullopt;
  if (key.is(ArgumentKind::Slice)) return slice_of(v, key);
  if (!key.is_int() && !key.is_bool()) return std::nullopt;
  const int64_t n = static_cast<int64_t>(v.size()), i = to_int(key);
  if (i < -n || i >= n) throw IndexError(v.type_name() + " index out of range");
  return v[static_cast<size_t>(i < 0 ? i + n : i)];
}

std::optional<Value> evaluate(Builtin f, std::span<const Value> args) {
  if (args.size() == 1) {
    if (is_number(args[0])) return on_number(f, args[0]);
    const bool sized = is_sequence(args[0]) || args[0].is(ArgumentKind::Dict);
    if (f == Builtin::Len && sized) return static_cast<int64_t>(args[0].size());
    return std::nullopt;
  }
  if (args.size() != 2) return std::nullopt;
  const Value &a = args[0], &b = args[1];
  if (f == Builtin::GetItem) return get_item(a, b);
  if (is_number(a) && is_number(b)) {
    if (a.is_float() || b.is_float()) return on_floats(f, a.to_double(), b.to_double());
    const bool logical = a.is_bool() && b.is_bool();
    auto r = on_ints(f, to_int(a), to_int(b));
    if (logical && (f == Builtin::And || f == Builtin::Or || f == Builtin::Xor)) return Value(r->as_int() != 0);
    return r;
  }
  if (f == Builtin::Eq) return a == b;
  if (f == Builtin::Ne) return !(a == b);
  if (f == Builtin::Add && is_sequence(a) && a.kind() == b.kind()) {
    std::vector<Value> items(a.items().begin(), a.items().end());
    items.insert(items.end(), b.items().begin(), b.items().end());
    return a.is(ArgumentKind::List) ? Value::list(items) : Value::tuple(items);
  }
  return std::nullopt;
}

class BuiltinFunction final : public Callable {
 public:
  BuiltinFunction(Builtin id, std::string_view module, std::string_view name)
      : id_(id), name_(std::string(module) + "." + std::string(name)), base_(name_.substr(module.size() + 1)) {}

  std::string type_name() const override { return "builtin_function_or_method"; }
  std::string_view qualified_name() const override { return name_; }
  std::string_view base_name() const override { return base_; }
  bool is_impure(const Argument&, const Argument&, bool) const override { return id_ == Builtin::SetItem; }
  Value call(std::span<const Value> args, const Value&) const override {
    if (auto v = evaluate(id_, args)) return *v;
    std::string types;
    for (const Value& v : args) types += (types.empty() ? "" : ", ") + v.type_name();
    throw TypeError(pretty_name() + ": no meaning here for (" + types + "); tensors need an OperatorResolver");
  }

 private:
  Builtin id_;
  std::string name_, base_;
};

using Table = std::unordered_map<std::string_view, CallableRef>;

Table make_table() {
  Table table;
#define FXJIT_BUILTIN(Id, module, name) \
  table.emplace(module "." name, make_ref<BuiltinFunction>(Builtin::Id, module, name));
#include "fx/builtin_functions.def"
#undef FXJIT_BUILTIN
  return table;
}

}  // namespace

CallableRef builtin_function(std::string_view qualified_name) {
  // Immutable, and leaked: graphs in static storage may outlive any order of destruction.
  static const Table& table = *new Table(make_table());
  const auto it = table.find(qualified_name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace fxjit::inline v0::fx
