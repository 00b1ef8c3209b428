// The EMIT texts on a builder of plain numbers against the REF texts, row by row over the samples.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/ref.h"
#include "ops/samples.h"
#include "table_data.h"

namespace fxjit::ops {
namespace {

namespace R = reference;

// The builder vocabulary of elementwise.def over one element of type T; masks are bool.
template <class T>
struct HostBuilder {
  T c(double v) {
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(v);
    return static_cast<T>(static_cast<int64_t>(v));
  }
  T add(T x, T y) { return R::add(x, y); }
  T sub(T x, T y) { return R::sub(x, y); }
  T mul(T x, T y) { return R::mul(x, y); }
  T neg(T x) { return R::neg(x); }
  T abs(T x) { return R::abs(x); }
  T div(T x, T y) { return x / y; }
  T fma(T x, T y, T z) { return R::fma(x, y, z); }
  T sqrt(T x) { return std::sqrt(x); }
  T floor(T x) { return std::floor(x); }
  T ceil(T x) { return std::ceil(x); }
  T trunc(T x) { return std::trunc(x); }
  T round_even(T x) { return std::nearbyint(x); }
  T min(T x, T y) { return R::min(x, y); }
  T max(T x, T y) { return R::max(x, y); }
  bool lt(T x, T y) { return x < y; }
  bool le(T x, T y) { return x <= y; }
  bool gt(T x, T y) { return x > y; }
  bool ge(T x, T y) { return x >= y; }
  bool eq(T x, T y) { return x == y; }
  bool ne(T x, T y) { return x != y; }
  bool isnan(T x) { return x != x; }
  template <class V>
  V and_(V x, V y) {
    return static_cast<V>(x & y);
  }
  template <class V>
  V or_(V x, V y) {
    return static_cast<V>(x | y);
  }
  template <class V>
  V xor_(V x, V y) {
    return static_cast<V>(x ^ y);
  }
  template <class V>
  V not_(V x) {
    return R::bit_not(x);
  }
  T shl(T x, T y) { return R::shl(x, y); }
  T shr(T x, T y) { return R::shr(x, y); }
  T select(bool m, T x, T y) { return m ? x : y; }
#define FXJIT_MATH(name, arity, ulp, low, high, exact) \
  template <class... A>                                \
  T name(A... args) {                                  \
    return R::name(args...);                           \
  }
#include "fxjit/ops/math.def"
};

template <class T>
constexpr DType kType = std::is_same_v<T, float>     ? DType::Float32
                        : std::is_same_v<T, double>  ? DType::Float64
                        : std::is_same_v<T, bool>    ? DType::Bool
                        : std::is_same_v<T, uint8_t> ? DType::UInt8
                        : std::is_same_v<T, int8_t>  ? DType::Int8
                        : std::is_same_v<T, int16_t> ? DType::Int16
                        : std::is_same_v<T, int32_t> ? DType::Int32
                                                     : DType::Int64;

template <class T>
T unwrap(Value v) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(v.f());
  return static_cast<T>(v.i());
}

template <class T>
Value wrap(T v) {
  if constexpr (std::is_floating_point_v<T>) return Value::of(static_cast<double>(v));
  return Value::of(static_cast<int64_t>(v));
}

#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten)                             \
  template <class B, class X, class T>                                                                        \
  auto emit_##name([[maybe_unused]] B& b, [[maybe_unused]] X x, [[maybe_unused]] T y, [[maybe_unused]] T z) { \
    emit                                                                                                      \
  }
#include "fxjit/ops/elementwise.def"

template <class T>
Value emitted(OpId id, Value x, Value y, Value z) {
  HostBuilder<T> b;
  switch (id) {
#define FXJIT_ELEMENTWISE(name, arity, promote, domain, emit, ref, samples, aten) \
  case OpId::name:                                                                \
    if constexpr (((domain) & bit(kType<T>)) != 0) {                              \
      using X = std::conditional_t<Promote::promote == Promote::Where, bool, T>;  \
      return wrap(emit_##name(b, unwrap<X>(x), unwrap<T>(y), unwrap<T>(z)));      \
    }                                                                             \
    break;
#include "fxjit/ops/elementwise.def"
  }
  return {};
}

template <class T>
void check_row(const OpRow& row) {
  const DType t = kType<T>;
  if (!(row.domain & bit(t))) return;
  const DType result = returns_bool(row.promote) ? DType::Bool : t;
  const std::vector<Value> xs =
      row.promote == Promote::Where ? samples(Samples::All, DType::Bool) : samples(row.samples, t);
  const std::vector<Value> more = samples(row.samples, t), none = {Value{}};
  const size_t step = row.arity == 3 ? 7 : 1;
  for (const Value& x : xs) {
    for (size_t i = 0; i < (row.arity > 1 ? more.size() : 1); i += step) {
      for (size_t j = 0; j < (row.arity > 2 ? more.size() : 1); j += step) {
        const Value y = row.arity > 1 ? more[i] : Value{}, z = row.arity > 2 ? more[j] : Value{};
        const Value got = emitted<T>(row.id, x, y, z), want = apply(row.id, t, x, y, z);
        ASSERT_TRUE(testing::same_value(result, got, want))
            << row.name << " on " << to_text(t) << " " << testing::show(t, x) << ", " << testing::show(t, y) << ", "
            << testing::show(t, z) << ": EMIT gives " << testing::show(result, got) << ", REF "
            << testing::show(result, want);
      }
    }
  }
}

class EveryRow : public ::testing::TestWithParam<OpRow> {};

TEST_P(EveryRow, EmitAndReferenceAgree) {
  check_row<float>(GetParam());
  check_row<double>(GetParam());
  check_row<uint8_t>(GetParam());
  check_row<int8_t>(GetParam());
  check_row<int16_t>(GetParam());
  check_row<int32_t>(GetParam());
  check_row<int64_t>(GetParam());
  check_row<bool>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Table, EveryRow, ::testing::ValuesIn(rows().begin(), rows().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fxjit::ops
