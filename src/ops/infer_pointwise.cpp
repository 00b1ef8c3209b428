// Types of elementwise results.
#include "ops/infer_context.h"
#include "support/errors.h"

namespace fxjit::inline v0::ops {

using support::concat;

namespace {

bool is_complex(DType t) { return kind_of(t) == 'c'; }

TypeResult promoted(const Inference& c, std::initializer_list<size_t> which, Promote rule) {
  Result<Operands> xs = operands(c, which);
  if (!xs) return xs.failure();
  return iterate(c, *xs, promote(rule, xs->types, c.default_float).result);
}

// Only the first operand is iterated over: parameters neither promote nor broadcast.
TypeResult unary(const Inference& c) { return promoted(c, {0}, Promote::Same); }

}  // namespace

TypeResult infer_elementwise(const Inference& c, const OpRow& row) {
  Result<Operands> xs = row.arity == 1   ? operands(c, {0})
                        : row.arity == 2 ? operands(c, {0, 1})
                                         : operands(c, {0, 1, 2});
  if (!xs) return xs.failure();
  std::span<const OperandType> types = xs->types;
  if (row.promote == Promote::Where) types = types.subspan(1);
  const DType result = promote(row.promote, types, c.default_float).result;
  if (is_complex(result) && row.id == OpId::abs) return Failure{concat(c.schema, " of complex numbers")};
  return iterate(c, *xs, result);
}

namespace {

// result_type of self and the bounds; only tensor bounds broadcast.
TypeResult infer_bounds(const Inference& c, std::initializer_list<size_t> bounds) {
  Result<Operands> xs = operands(c, {0});
  if (!xs) return xs.failure();
  for (size_t i : bounds) {
    if (c.argument(i).is_none()) continue;
    Result<Operands> bound = operands(c, {i});
    if (!bound) return bound.failure();
    xs->types.push_back(bound->types[0]);
    if (c.tensor(i) != nullptr) xs->layouts.push_back(bound->layouts[0]);
  }
  return iterate(c, *xs, result_type(xs->types, c.default_float));
}

TypeResult infer_pow(const Inference& c) {
  Result<Operands> xs = operands(c, {0, 1});
  if (!xs) return xs.failure();
  const DType dtype = result_type(xs->types, c.default_float);
  // A number is no operand of the iteration.
  for (size_t i = 2; i-- > 0;) {
    if (c.tensor(i) == nullptr) xs->layouts.erase(xs->layouts.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return iterate(c, *xs, dtype);
}

// The power of 2.
TypeResult infer_square(const Inference& c) {
  Result<Operands> xs = operands(c, {0});
  if (!xs) return xs.failure();
  xs->types.push_back({OperandType::Wrapped, DType::Int64});
  return iterate(c, *xs, result_type(xs->types, c.default_float));
}

TypeResult infer_div_mode(const Inference& c) {
  const fx::Argument mode = c.argument(2);
  return promoted(c, {0, 1}, mode.is_none() ? Promote::Float : Promote::Same);
}

TypeResult infer_masked_fill(const Inference& c) {
  const TensorType *x = c.tensor(0), *mask = c.tensor(1);
  if (x == nullptr || mask == nullptr) return Failure{concat(c.schema, ": not two tensors")};
  const Dims* shapes[] = {&x->sizes, &mask->sizes};
  Result<Dims> sizes = broadcast(c.env, shapes);
  if (!sizes) return sizes.failure();
  Dims strides = contiguous_strides(c.env, *sizes);  // eager fills a contiguous copy
  return make_type(c, std::move(*sizes), std::move(strides), x->dtype);
}

// The memory format argument, as far as it is the preserved or the contiguous one.
Result<Dims> strides_in_format(const Inference& c, const TensorType& x, const fx::Argument& format) {
  if (format.is_none()) return preserved_strides(c.env, layout_of(x));
  if (!format.is(fx::Argument::Kind::MemoryFormat)) return Failure{concat(c.schema, ": no memory format")};
  switch (format.as_memory_format()) {
    case fx::MemoryFormat::Preserve:
      return preserved_strides(c.env, layout_of(x));
    case fx::MemoryFormat::Contiguous:
      return contiguous_strides(c.env, x.sizes);
    case fx::MemoryFormat::ChannelsLast:
    case fx::MemoryFormat::ChannelsLast3d:
      break;
  }
  return Failure{concat(c.schema, ": a channels-last format")};
}

TypeResult copied(const Inference& c, DType dtype, const fx::Argument& format) {
  const TensorType* x = c.tensor(0);
  if (x == nullptr) return Failure{concat(c.schema, ": self is no tensor")};
  Result<Dims> strides = strides_in_format(c, *x, format);
  if (!strides) return strides.failure();
  return make_type(c, x->sizes, std::move(*strides), dtype);
}

TypeResult same_type(const Inference& c) {
  const TensorType* x = c.tensor(0);
  if (x == nullptr) return Failure{concat(c.schema, ": self is no tensor")};
  return make_type(c, x->sizes, x->strides, x->dtype);
}

TypeResult infer_identity(const Inference& c) {
  const TensorType* x = c.tensor(0);
  if (x == nullptr) return Failure{concat(c.schema, ": self is no tensor")};
  if (c.schema == "aten::clone") return copied(c, x->dtype, c.argument(1));
  if (c.schema == "aten::contiguous") {
    if (is_contiguous(c.env, *x)) return same_type(c);
    return copied(c, x->dtype, c.argument(1).is_none() ? fx::Argument(fx::MemoryFormat::Contiguous) : c.argument(1));
  }
  return same_type(c);
}

// Where the dtype, the device and the memory format are among the arguments of a cast.
struct CastArguments {
  int dtype, other, device, copy, format;
};

CastArguments cast_arguments(std::string_view schema) {
  if (schema == "aten::to.dtype") return {1, -1, -1, 3, 4};
  if (schema == "aten::to.device") return {2, -1, 1, 4, 5};
  if (schema == "aten::to.dtype_layout") return {1, -1, 3, 6, 7};
  if (schema == "aten::to.other") return {-1, 1, -1, 3, 4};
  if (schema == "aten::_to_copy") return {1, -1, 3, -1, 6};
  return {-1, 1, -1, -1, -1};  // type_as
}

TypeResult infer_cast(const Inference& c) {
  const TensorType* x = c.tensor(0);
  if (x == nullptr) return Failure{concat(c.schema, ": self is no tensor")};
  const CastArguments at = cast_arguments(c.schema);
  auto argument = [&](int i) { return i < 0 ? fx::Argument() : c.argument(static_cast<size_t>(i)); };
  const fx::Argument device = argument(at.device);
  if (!device.is_none() && !(device.is(fx::Argument::Kind::Device) && device.as_device().type == 0)) {
    return Failure{concat(c.schema, ": to another device")};
  }
  DType dtype = x->dtype;
  if (at.other >= 0) {
    const TensorType* other = c.tensor(static_cast<size_t>(at.other));
    if (other == nullptr || other->device != x->device) return Failure{concat(c.schema, ": no tensor like it")};
    dtype = other->dtype;
  } else if (const fx::Argument a = argument(at.dtype); a.is(fx::Argument::Kind::DType)) {
    dtype = a.as_dtype();
  }
  const fx::Argument copy = argument(at.copy), format = argument(at.format);
  const bool copies = c.schema == "aten::_to_copy" || (copy.is_bool() && copy.as_bool());
  if (dtype == x->dtype && !copies && format.is_none()) return same_type(c);
  return copied(c, dtype, format);
}

// zeros_like(self, dtype, layout, device, pin_memory, memory_format); full_like has its value before these.
TypeResult infer_fill(const Inference& c) {
  const TensorType* x = c.tensor(0);
  if (x == nullptr) return Failure{concat(c.schema, ": self is no tensor")};
  if (c.schema == "aten::fill.Scalar") return copied(c, x->dtype, {});
  const size_t first = c.schema == "aten::full_like" ? 2 : 1;
  const fx::Argument dtype = c.argument(first), device = c.argument(first + 2);
  if (!device.is_none() && !(device.is(fx::Argument::Kind::Device) && device.as_device().type == 0)) {
    return Failure{concat(c.schema, ": on another device")};
  }
  const DType t = dtype.is(fx::Argument::Kind::DType) ? dtype.as_dtype() : x->dtype;
  return copied(c, t, c.argument(first + 4));
}

}  // namespace

TypeResult infer_special(const Inference& c, SpecialRule rule) {
  switch (rule) {
    case SpecialRule::add:
    case SpecialRule::sub:
    case SpecialRule::rsub:
      return promoted(c, {0, 1}, Promote::Same);
    case SpecialRule::div_mode:
      return infer_div_mode(c);
    case SpecialRule::pow:
      return infer_pow(c);
    case SpecialRule::clamp:
      return infer_bounds(c, {1, 2});
    case SpecialRule::clamp_min:
    case SpecialRule::clamp_max:
      return infer_bounds(c, {1});
    case SpecialRule::addcmul:
    case SpecialRule::addcdiv:
      return promoted(c, {0, 1, 2}, Promote::Same);
    case SpecialRule::lerp_scalar:
      return promoted(c, {0, 1}, Promote::Same);
    case SpecialRule::square:
      return infer_square(c);
    case SpecialRule::hardtanh:
    case SpecialRule::gelu:
    case SpecialRule::leaky_relu:
    case SpecialRule::elu:
    case SpecialRule::softplus:
    case SpecialRule::threshold:
      return unary(c);
    case SpecialRule::masked_fill:
      return infer_masked_fill(c);
    case SpecialRule::identity:
      return infer_identity(c);
    case SpecialRule::cast:
      return infer_cast(c);
    case SpecialRule::fill:
      return infer_fill(c);
  }
  FXJIT_UNREACHABLE("a rule of special.def");
}

}  // namespace fxjit::inline v0::ops
