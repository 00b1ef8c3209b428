#include "ops/samples.h"

#include <cmath>
#include <limits>

#include "support/errors.h"

namespace fxjit::inline v0::ops {
namespace {

struct FloatRange {
  double tiny;    // the smallest subnormal
  double normal;  // the smallest normal number
  double largest;
};

FloatRange range_of(DType t) {
  if (t == DType::Float16) return {0x1p-24, 0x1p-14, 65504};
  if (t == DType::BFloat16) return {0x1p-133, 0x1p-126, 0x1.fep127};
  if (t == DType::Float32) return {0x1p-149, 0x1p-126, std::numeric_limits<float>::max()};
  return {0x1p-1074, 0x1p-1022, std::numeric_limits<double>::max()};
}

void push(std::vector<Value>& out, DType t, double v) {
  out.push_back(round_to(t, Value::of(v)));
  out.push_back(round_to(t, Value::of(-v)));
}

// A fixed sequence of fractions in [0, 1) without a visible period.
double fraction(int i) { return std::fmod(i * 0.6180339887498949, 1.0); }

std::vector<Value> floats(Samples set, DType t) {
  const FloatRange r = range_of(t);
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<Value> out;
  for (double v : {0.0, 1.0, 0.5, 2.0, 3.0, 1.5, 2.5, inf, r.tiny, r.tiny * 3, r.normal}) push(out, t, v);
  out.push_back(Value::of(std::numeric_limits<double>::quiet_NaN()));
  for (double v : {0.1, 6.0, 7.25, 10.0, 17.0, 20.5, 88.5, 104.0, 0.99, 1.0009765625, 127.5, 255.0}) push(out, t, v);
  const double largest = set == Samples::All ? r.largest : 1e4;
  const double lowest = std::log2(set == Samples::All ? r.normal : 1e-4);
  if (set == Samples::All) push(out, t, r.largest);
  for (int i = 1; i <= 40; ++i) push(out, t, std::exp2(lowest + fraction(i) * (std::log2(largest) - lowest)));
  for (int i = 1; i <= 40; ++i) push(out, t, 12 * fraction(i + 100));
  return out;
}

std::vector<Value> integers(Samples set, DType t) {
  const int bits = static_cast<int>(8 * size_of(t));
  std::vector<Value> out;
  auto add = [&](int64_t v) { out.push_back(round_to(t, Value::of(v))); };
  for (int64_t v = -3; v <= 3; ++v) add(v);
  if (set == Samples::Shift) {
    for (int64_t v : {bits - 2, bits - 1, bits, bits + 1, 100, -100, 5}) add(v);
  }
  const bool is_signed = kind_of(t) == 'i';
  const uint64_t top = uint64_t{1} << (is_signed ? bits - 1 : bits);  // u8 is the only unsigned type
  for (int64_t v : {0, 1, 2}) {
    add(static_cast<int64_t>(top - 1) - v);
    add(is_signed ? static_cast<int64_t>(uint64_t{0} - top) + v : v);
  }
  for (int i = 1; i <= 40; ++i) {
    const double size = std::exp2(fraction(i) * (bits - 1));
    add(static_cast<int64_t>(i % 2 && is_signed ? -size : size));
  }
  return out;
}

}  // namespace

std::vector<Value> samples(Samples set, DType t) {
  switch (kind_of(t)) {
    case 'f':
      return floats(set, t);
    case 'i':
    case 'u':
      return integers(set, t);
    case 'b':
      return {Value::of(int64_t{0}), Value::of(int64_t{1})};
    default:
      break;
  }
  FXJIT_UNREACHABLE("samples of ", to_text(t));
}

}  // namespace fxjit::inline v0::ops
