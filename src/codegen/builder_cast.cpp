// Conversions, by C++'s and ATen's rules, and the bit tricks of the math functions.
#include "codegen/builder.h"
#include "support/errors.h"

namespace fxjit::inline v0::codegen {

using llvm::ArrayRef;
using llvm::Value;

Vec Builder::raw_min(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) { return hooks_.raw_min(b, v[0], v[1]); });
}

Vec Builder::raw_max(const Vec& x, const Vec& y) {
  return map(x.type, {&x, &y}, [&](Ir& b, ArrayRef<Value*> v) { return hooks_.raw_max(b, v[0], v[1]); });
}

Vec Builder::horner(const Vec& x, std::initializer_list<double> highest_first) {
  Vec p = constant(*highest_first.begin(), x.type);
  for (const double* k = highest_first.begin() + 1; k != highest_first.end(); ++k) p = fma(p, x, constant(*k, x.type));
  return p;
}

Vec Builder::bits(const Vec& x) {
  return map(DType::Int32, {&x},
             [&](Ir& b, ArrayRef<Value*> v) { return b.CreateBitCast(v[0], lane_type(DType::Int32)); });
}

Vec Builder::from_bits(const Vec& x) {
  return map(DType::Float32, {&x},
             [&](Ir& b, ArrayRef<Value*> v) { return b.CreateBitCast(v[0], lane_type(DType::Float32)); });
}

Vec Builder::to_int(const Vec& x) {
  return map(DType::Int32, {&x},
             [&](Ir& b, ArrayRef<Value*> v) { return b.CreateFPToSI(v[0], lane_type(DType::Int32)); });
}

Vec Builder::shl_bits(const Vec& x, unsigned amount) {
  return map(x.type, {&x}, [&](Ir& b, ArrayRef<Value*> v) { return b.CreateShl(v[0], amount); });
}

Vec Builder::power_of_double_image(const Vec& image) {
  return map(DType::Float64, {&image}, [&](Ir& b, ArrayRef<Value*> v) {
    llvm::Type* type = lane_type(DType::Int64);
    Value* shifted = b.CreateShl(b.CreateBitCast(v[0], type), 52);
    return b.CreateBitCast(b.CreateAdd(shifted, llvm::ConstantInt::get(type, int64_t{1023} << 52)), v[0]->getType());
  });
}

Vec Builder::with_sign_of(const Vec& magnitude, const Vec& sign) {
  return from_bits(or_(bits(magnitude), and_(bits(sign), constant_int(INT32_MIN, DType::Int32))));
}

Vec Builder::scale_by_power_of_two(const Vec& x, const Vec& n, const Vec& image) {
  return map(x.type, {&x, &n, &image},
             [&](Ir& b, ArrayRef<Value*> v) { return hooks_.scale_by_power_of_two(b, v[0], v[1], v[2]); });
}

Vec Builder::bound_remainder(const Vec& r, double limit) {
  return map(r.type, {&r}, [&](Ir& b, ArrayRef<Value*> v) { return hooks_.bound_remainder(b, v[0], limit); });
}

std::pair<Vec, Vec> Builder::split_exponent(const Vec& x) {
  Vec exponent{{}, x.type, x.uniform};
  Vec mantissa = map(x.type, {&x}, [&](Ir& b, ArrayRef<Value*> v) {
    auto [m, e] = hooks_.split_exponent(b, v[0]);
    exponent.parts.push_back(e);
    return m;
  });
  return {mantissa, exponent};
}

Vec Builder::round_to(const Vec& x, DType half) {
  if (!is_half(half)) return x;
  return map(DType::Float32, {&x}, [&](Ir& b, ArrayRef<Value*> v) { return hooks_.round_to_half(b, v[0], half); });
}

namespace {

// Between register types; halves are Float32 on both sides.
Value* convert(Ir& b, const TargetHooks& hooks, Value* v, DType from, DType to, llvm::Type* to_type) {
  if (from == to) return v;
  if (to == DType::Bool) {
    llvm::Constant* zero = llvm::Constant::getNullValue(v->getType());
    return is_floating(from) ? b.CreateFCmpUNE(v, zero) : b.CreateICmpNE(v, zero);  // NaN is true
  }
  const bool from_unsigned = from == DType::UInt8 || from == DType::Bool;
  if (is_floating(to)) {
    if (is_floating(from)) return b.CreateFPCast(v, to_type);
    return from_unsigned ? b.CreateUIToFP(v, to_type) : b.CreateSIToFP(v, to_type);
  }
  if (is_floating(from)) return hooks.float_to_int(b, v, to);
  return b.CreateIntCast(v, to_type, !from_unsigned);
}

}  // namespace

// Double to half goes through float, with two roundings, as c10::Half does.
Vec Builder::cast(const Vec& x, DType from, DType to) {
  const DType held = compute_type(to);
  FXJIT_CHECK(x.type == compute_type(from), "cast of a value that is not of its source type");
  Vec y = x;
  if (held != x.type) {
    y = map(held, {&x},
            [&](Ir& b, ArrayRef<Value*> v) { return convert(b, hooks_, v[0], x.type, held, lane_type(held)); });
  }
  // From float16 to bfloat16 and back rounds; from integers too, where they have more bits than the type.
  return is_half(to) && from != to && from != DType::Bool ? round_to(y, to) : y;
}

Value* Builder::scalar_cast(Value* v, DType from, DType to) {
  const DType held = compute_type(to);
  if (is_floating(from)) v = hoist.CreateBitCast(v, hoist.getDoubleTy());
  v = convert(hoist, hooks_, v, is_floating(from) ? DType::Float64 : DType::Int64, held, scalar_type(held));
  if (is_half(to)) v = hooks_.round_to_half(hoist, v, to);
  return v;
}

}  // namespace fxjit::inline v0::codegen
