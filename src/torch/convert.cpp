#include "torch/convert.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/core/TensorImpl.h>

#include "torch/dtype.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

using Kind = fx::Argument::Kind;
using MaybeValue = std::optional<c10::IValue>;

std::optional<c10::Scalar> to_scalar(const fx::Value& v) {
  if (v.is_bool()) return c10::Scalar(v.as_bool());
  if (v.is_int()) return c10::Scalar(v.as_int());
  if (v.is_float()) return c10::Scalar(v.as_float());
  if (v.is(Kind::Complex)) return c10::Scalar(c10::complex<double>(v.as_complex()));
  return std::nullopt;
}

MaybeValue to_tensor(const fx::Value& v, bool numbers_as_tensors) {
  if (at::Tensor t = as_tensor(v); t.defined()) return c10::IValue(std::move(t));
  if (!numbers_as_tensors) return std::nullopt;
  if (auto s = to_scalar(v)) return c10::IValue(wrapped_number(*s));
  return std::nullopt;
}

bool is_value_sequence(const fx::Value& v) { return v.is(Kind::List) || v.is(Kind::Tuple) || v.is(Kind::NamedTuple); }

// Kernels look at a list's element type: SymInt[] takes a list of int.
c10::TypePtr stored_type(const c10::TypePtr& element) {
  if (element->kind() == c10::TypeKind::SymIntType) return c10::IntType::get();
  return element;
}

MaybeValue to_list(const fx::Value& v, const c10::TypePtr& element, bool numbers_as_tensors) {
  if (!is_value_sequence(v)) return std::nullopt;
  c10::impl::GenericList list(stored_type(element));
  list.reserve(v.size());
  for (const fx::Value& item : v.items()) {
    MaybeValue converted = to_ivalue(item, *element, numbers_as_tensors);
    if (!converted) return std::nullopt;
    list.push_back(*std::move(converted));
  }
  return c10::IValue(std::move(list));
}

MaybeValue to_tuple(const fx::Value& v, const c10::Type& type, bool numbers_as_tensors) {
  auto elements = type.containedTypes();
  if (!is_value_sequence(v) || v.size() != elements.size()) return std::nullopt;
  std::vector<c10::IValue> items;
  for (size_t i = 0; i < elements.size(); ++i) {
    MaybeValue item = to_ivalue(v[i], *elements[i], numbers_as_tensors);
    if (!item) return std::nullopt;
    items.push_back(*std::move(item));
  }
  return c10::IValue(c10::ivalue::Tuple::create(std::move(items)));
}

// The enums travel as ints.
template <class T>
MaybeValue enum_or_int(const fx::Value& v, Kind kind, T (fx::Argument::*get)() const) {
  if (v.is(kind)) return c10::IValue(static_cast<int64_t>((v.*get)()));
  if (v.is_int()) return c10::IValue(v.as_int());
  return std::nullopt;
}

MaybeValue to_device(const fx::Value& v) {
  if (v.is(Kind::Device)) return c10::IValue(to_c10(v.as_device()));
  if (!v.is_str()) return std::nullopt;
  try {
    return c10::IValue(c10::Device(std::string(v.as_str())));
  } catch (const std::exception&) {
    return std::nullopt;  // no device of that name: another overload, or the resolver's own error
  }
}

}  // namespace

at::Tensor wrapped_number(const c10::Scalar& s) {
  // Python's parser makes these with ATen's scalar_to_tensor; the dispatcher need not see it.
  at::Tensor t = at::detail::empty_cpu({}, s.type(), false);
  void* data = t.unsafeGetTensorImpl()->mutable_data();
  if (s.isBoolean()) {
    *static_cast<bool*>(data) = s.toBool();
  } else if (s.isFloatingPoint()) {
    *static_cast<double*>(data) = s.toDouble();
  } else if (s.isComplex()) {
    *static_cast<c10::complex<double>*>(data) = s.toComplexDouble();
  } else {
    *static_cast<int64_t*>(data) = s.toLong();
  }
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

MaybeValue to_ivalue(const fx::Value& v, const c10::Type& type, bool numbers_as_tensors) {
  if (auto* o = dynamic_cast<const IValueObject*>(v.object_or_null())) return o->value();
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return to_tensor(v, numbers_as_tensors);
    case c10::TypeKind::OptionalType:
      if (v.is_none()) return c10::IValue();
      return to_ivalue(v, *type.containedTypes().at(0), numbers_as_tensors);
    case c10::TypeKind::ListType:
      return to_list(v, type.containedTypes().at(0), numbers_as_tensors);
    case c10::TypeKind::TupleType:
      return to_tuple(v, type, numbers_as_tensors);
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::IntType:
      return v.is_int() ? MaybeValue(v.as_int()) : std::nullopt;
    case c10::TypeKind::SymFloatType:
    case c10::TypeKind::FloatType:
      return v.is_float() || v.is_int() ? MaybeValue(v.to_double()) : std::nullopt;
    case c10::TypeKind::SymBoolType:
    case c10::TypeKind::BoolType:
      return v.is_bool() ? MaybeValue(v.as_bool()) : std::nullopt;
    case c10::TypeKind::NumberType: {
      auto s = to_scalar(v);
      return s ? MaybeValue(c10::IValue(*s)) : std::nullopt;
    }
    case c10::TypeKind::ComplexType:
      return v.is(Kind::Complex) ? MaybeValue(c10::IValue(c10::complex<double>(v.as_complex()))) : std::nullopt;
    case c10::TypeKind::StringType:
      return v.is_str() ? MaybeValue(c10::IValue(std::string(v.as_str()))) : std::nullopt;
    case c10::TypeKind::DeviceObjType:
      return to_device(v);
    case c10::TypeKind::ScalarTypeType:
      return enum_or_int(v, Kind::DType, &fx::Argument::as_dtype);
    case c10::TypeKind::LayoutType:
      return enum_or_int(v, Kind::Layout, &fx::Argument::as_layout);
    case c10::TypeKind::MemoryFormatType:
      return enum_or_int(v, Kind::MemoryFormat, &fx::Argument::as_memory_format);
    case c10::TypeKind::NoneType:
      return v.is_none() ? MaybeValue(c10::IValue()) : std::nullopt;
    case c10::TypeKind::AnyType:
      return to_ivalue(v);
    default:  // generators, streams, custom classes: only as IValueObject, above
      return v.is_none() ? MaybeValue(c10::IValue()) : std::nullopt;
  }
}

MaybeValue to_ivalue(const fx::Value& v, const c10::Argument& schema, bool numbers_as_tensors) {
  const c10::Type& type = *schema.real_type();
  if (MaybeValue r = to_ivalue(v, type, numbers_as_tensors)) return r;
  if (!schema.N() || is_value_sequence(v) || v.is_none()) return std::nullopt;
  // int[2] takes an int for both.
  std::vector<fx::Value> copies(static_cast<size_t>(*schema.N()), v);
  return to_ivalue(fx::Value::list(copies), type, numbers_as_tensors);
}

MaybeValue to_ivalue(const fx::Value& v) {
  switch (v.kind()) {
    case Kind::None:
      return c10::IValue();
    case Kind::Bool:
      return c10::IValue(v.as_bool());
    case Kind::Int:
      return c10::IValue(v.as_int());
    case Kind::Float:
      return c10::IValue(v.as_float());
    case Kind::Complex:
      return c10::IValue(c10::complex<double>(v.as_complex()));
    case Kind::Str:
      return c10::IValue(std::string(v.as_str()));
    case Kind::DType:
      return c10::IValue(static_cast<int64_t>(v.as_dtype()));
    case Kind::Layout:
      return c10::IValue(static_cast<int64_t>(v.as_layout()));
    case Kind::MemoryFormat:
      return c10::IValue(static_cast<int64_t>(v.as_memory_format()));
    case Kind::Device:
      return c10::IValue(to_c10(v.as_device()));
    case Kind::Object:
      if (auto* o = dynamic_cast<const IValueObject*>(v.object_or_null())) return o->value();
      return to_tensor(v, false);
    case Kind::List: {
      std::vector<c10::IValue> items;
      for (const fx::Value& item : v.items()) {
        MaybeValue r = to_ivalue(item);
        if (!r) return std::nullopt;
        items.push_back(*std::move(r));
      }
      c10::TypePtr element = items.empty() ? c10::TypePtr(c10::AnyType::get()) : items[0].type();
      for (const c10::IValue& item : items)
        if (*item.type() != *element) element = c10::AnyType::get();
      c10::impl::GenericList list(element);
      for (c10::IValue& item : items) list.push_back(std::move(item));
      return c10::IValue(std::move(list));
    }
    case Kind::Tuple:
    case Kind::NamedTuple: {
      std::vector<c10::IValue> items;
      for (const fx::Value& item : v.items()) {
        MaybeValue r = to_ivalue(item);
        if (!r) return std::nullopt;
        items.push_back(*std::move(r));
      }
      return c10::IValue(c10::ivalue::Tuple::create(std::move(items)));
    }
    case Kind::Node:
    case Kind::Ellipsis:
    case Kind::Dict:
    case Kind::Slice:
    case Kind::Range:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace fxjit::inline v0::torch_
