#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include "torch/convert.h"
#include "torch/dtype.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

template <class Items>
fx::Value sequence(const Items& items, bool tuple, const std::vector<c10::TypePtr>& types) {
  std::vector<fx::Value> out;
  size_t i = 0;
  for (const c10::IValue& item : items) {
    // One type for all items of a list, one each for a tuple's.
    const c10::Type* type = types.empty() ? nullptr : types[types.size() == 1 ? 0 : i].get();
    out.push_back(type ? to_value(item, *type) : to_value(item));
    ++i;
  }
  return tuple ? fx::Value::tuple(out) : fx::Value::list(out);
}

fx::Value enum_value(const c10::IValue& v, c10::TypeKind kind) {
  int64_t raw = v.toInt();
  if (kind == c10::TypeKind::LayoutType) return static_cast<fx::Layout>(raw);
  if (kind == c10::TypeKind::MemoryFormatType) return static_cast<fx::MemoryFormat>(raw);
  if (auto t = to_dtype(static_cast<c10::ScalarType>(raw))) return *t;
  return fx::Value(fx::make_ref<IValueObject>(v));  // a type without a name here: ATen gets it back as it came
}

}  // namespace

fx::Value to_value(const c10::IValue& v) {
  if (v.isNone()) return {};
  if (v.isTensor()) return v.toTensor().defined() ? from_tensor(v.toTensor()) : fx::Value();
  if (v.isBool()) return v.toBool();
  if (v.isInt()) return v.toInt();
  if (v.isDouble()) return v.toDouble();
  if (v.isComplexDouble()) return std::complex<double>(v.toComplexDouble());
  if (v.isString()) return std::string_view(v.toStringRef());
  if (v.isDevice()) return to_device(v.toDevice());
  if (v.isTuple()) return sequence(v.toTupleRef().elements(), true, {});
  if (v.isList()) return sequence(v.toListRef(), false, {});
  return fx::Value(fx::make_ref<IValueObject>(v));
}

fx::Value to_value(const c10::IValue& v, const c10::Type& real_type) {
  if (v.isNone()) return {};
  switch (real_type.kind()) {
    case c10::TypeKind::OptionalType:
      return to_value(v, *real_type.containedTypes().at(0));
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
      return v.isInt() ? enum_value(v, real_type.kind()) : to_value(v);
    case c10::TypeKind::ListType:
      return v.isList() ? sequence(v.toListRef(), false, {real_type.containedTypes().at(0)}) : to_value(v);
    default:
      return to_value(v);
  }
}

}  // namespace fxjit::inline v0::torch_
