#include "torch/method_resolver.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <string>
#include <unordered_map>

#include "fxjit/errors.h"
#include "torch/dtype.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

using Args = std::span<const fx::Value>;
using Kind = fx::Value::Kind;

bool holds_tensor(const fx::Value& v) {
  if (v.is_object()) return as_tensor(v).defined();
  if (!v.is_aggregate() || !v.contains_object() || v.is(Kind::Dict)) return false;
  for (const fx::Value& item : v.items())
    if (holds_tensor(item)) return true;
  return false;
}

fx::Value call(std::string_view name, std::initializer_list<fx::Value> args, const fx::Value& kwargs = {}) {
  auto result = call_overloaded(name, std::span(args.begin(), args.size()), kwargs);
  if (!result) throw AttributeError("'Tensor' object has no attribute '" + std::string(name) + "'");
  return *std::move(result);
}

// ---- Methods that are no ATen operators

struct CastRow {
  std::string_view name;
  DType type;
};
constexpr std::array<CastRow, 9> kCasts = {{{"float", DType::Float32},
                                            {"double", DType::Float64},
                                            {"half", DType::Float16},
                                            {"bfloat16", DType::BFloat16},
                                            {"int", DType::Int32},
                                            {"long", DType::Int64},
                                            {"short", DType::Int16},
                                            {"byte", DType::UInt8},
                                            {"bool", DType::Bool}}};

std::optional<fx::Value> cast_method(std::string_view name, Args args, const fx::Value& kwargs) {
  for (const CastRow& row : kCasts) {
    if (row.name != name) continue;
    const fx::Value with_type[] = {args[0], row.type};
    return call_overloaded("to", with_type, kwargs);
  }
  if (name == "char") return call("to", {args[0], DType::Int8}, kwargs);
  return std::nullopt;
}

fx::Value int_tuple(c10::IntArrayRef values) {
  std::vector<fx::Value> items(values.begin(), values.end());
  return fx::Value::tuple(items);
}

int64_t one_int(Args args, const fx::Value& kwargs, std::string_view name) {
  if (args.size() == 2 && args[1].is_int()) return args[1].as_int();
  if (const fx::Value* dim = kwargs.is_none() ? nullptr : kwargs.find("dim"); dim && dim->is_int())
    return dim->as_int();
  throw TypeError(std::string(name) + "() takes one int");
}

// Sizes and strides are host values: the dispatcher does not see them being read.
std::optional<fx::Value> metadata_method(std::string_view name, const at::Tensor& t, Args args,
                                         const fx::Value& kwargs) {
  const bool bare = args.size() == 1 && (kwargs.is_none() || kwargs.size() == 0);
  if (name == "size") return bare ? int_tuple(t.sizes()) : fx::Value(t.size(one_int(args, kwargs, name)));
  if (name == "stride") return bare ? int_tuple(t.strides()) : fx::Value(t.stride(one_int(args, kwargs, name)));
  if (!bare) return std::nullopt;
  if (name == "dim" || name == "ndimension") return t.dim();
  if (name == "numel" || name == "nelement") return t.numel();
  if (name == "element_size") return static_cast<int64_t>(t.element_size());
  if (name == "storage_offset") return t.storage_offset();
  if (name == "is_contiguous") return t.is_contiguous();
  if (name == "is_floating_point") return t.is_floating_point();
  if (name == "is_complex") return t.is_complex();
  if (name == "__len__") {
    if (t.dim() == 0) throw TypeError("len() of a 0-d tensor");
    return t.size(0);
  }
  return std::nullopt;
}

std::optional<fx::Value> special_method(std::string_view name, Args args, const fx::Value& kwargs) {
  if (name == "where" && args.size() == 3) return call("where", {args[1], args[0], args[2]}, kwargs);
  if (name == "to" && args.size() == 2 && (args[1].is(Kind::Device) || args[1].is_str())) {
    std::vector<fx::DictEntry> entries = {{"device", args[1]}};
    if (!kwargs.is_none()) entries.insert(entries.end(), kwargs.entries().begin(), kwargs.entries().end());
    return call("to", {args[0]}, fx::Value::dict(entries));
  }
  if (name == "cpu" && args.size() == 1) return call("to", {args[0]}, fx::Value::dict({{"device", fx::Device{}}}));
  if (name == "__getitem__" && args.size() == 2) return get_item(args[0], args[1]);
  return std::nullopt;
}

// ---- Attributes

std::optional<fx::Value> attribute(const at::Tensor& t, std::string_view name, const fx::Value& self) {
  if (name == "shape") return int_tuple(t.sizes());
  if (name == "ndim") return t.dim();
  if (name == "dtype") {
    if (auto type = to_dtype(t.scalar_type())) return *type;
    return fx::Value(fx::make_ref<IValueObject>(c10::IValue(static_cast<int64_t>(t.scalar_type()))));
  }
  if (name == "device") return to_device(t.device());
  if (name == "layout") return static_cast<fx::Layout>(t.layout());
  if (name == "requires_grad") return t.requires_grad();
  if (name == "is_cuda") return t.is_cuda();
  if (name == "itemsize") return static_cast<int64_t>(t.element_size());
  if (name == "T") return call("numpy_T", {self});
  if (name == "mT" || name == "mH" || name == "H")
    return call(name == "mT" ? "mT" : name == "mH" ? "mH" : "matrix_H", {self});
  if (name == "real" || name == "imag") return call(name, {self});
  return std::nullopt;
}

fx::Value get_attribute(Args args) {
  const at::Tensor t = as_tensor(args[0]);
  if (args.size() >= 2 && args[1].is_str()) {
    if (auto v = attribute(t, args[1].as_str(), args[0])) return *std::move(v);
    if (args.size() == 3) return args[2];
    throw AttributeError("'Tensor' object has no attribute '" + std::string(args[1].as_str()) + "'");
  }
  throw TypeError("getattr(): attribute name must be string");
}

// ---- Operators

struct OperatorRow {
  std::string_view name;       // behind "_operator."
  std::string_view forward;    // ATen's name
  std::string_view reflected;  // with a number on the left; empty: as forward
};
constexpr std::array<OperatorRow, 17> kBinary = {{{"add", "add", ""},
                                                  {"sub", "sub", "rsub"},
                                                  {"mul", "mul", ""},
                                                  {"truediv", "div", "reciprocal"},
                                                  {"floordiv", "floor_divide", ""},
                                                  {"mod", "remainder", ""},
                                                  {"pow", "pow", ""},
                                                  {"matmul", "matmul", ""},
                                                  {"lshift", "__lshift__", "bitwise_left_shift"},
                                                  {"rshift", "__rshift__", "bitwise_right_shift"},
                                                  {"and_", "bitwise_and", ""},
                                                  {"or_", "bitwise_or", ""},
                                                  {"xor", "bitwise_xor", ""},
                                                  {"eq", "eq", ""},
                                                  {"ne", "ne", ""},
                                                  {"lt", "lt", "gt"},
                                                  {"le", "le", "ge"}}};

// `a` is no tensor: what Tensor.__radd__ and its like do in Python.
fx::Value reflected(const OperatorRow& row, const fx::Value& a, const fx::Value& b) {
  if (row.name == "add" || row.name == "mul" || row.name == "and_" || row.name == "or_" || row.name == "xor" ||
      row.name == "eq" || row.name == "ne")
    return call(row.forward, {b, a});
  if (row.name == "truediv") return call("mul", {call("reciprocal", {b}), a});
  if (row.name == "sub" || row.name == "lt" || row.name == "le") return call(row.reflected, {b, a});
  return call(row.reflected.empty() ? row.forward : row.reflected, {a, b});
}

std::optional<fx::Value> binary(std::string_view name, const fx::Value& a, const fx::Value& b) {
  static constexpr OperatorRow gt = {"gt", "gt", "lt"}, ge = {"ge", "ge", "le"};
  const OperatorRow* row = name == "gt" ? &gt : name == "ge" ? &ge : nullptr;
  for (const OperatorRow& r : kBinary)
    if (r.name == name) row = &r;
  if (!row) return std::nullopt;
  if (as_tensor(a).defined()) return call(row->forward, {a, b});
  return row == &gt || row == &ge ? call(row->reflected, {b, a}) : reflected(*row, a, b);
}

std::optional<fx::Value> unary(std::string_view name, const fx::Value& a) {
  if (name == "neg") return call("neg", {a});
  if (name == "pos") return call("positive", {a});
  if (name == "invert") return call("bitwise_not", {a});
  if (name == "abs") return call("abs", {a});
  return std::nullopt;
}

}  // namespace

std::optional<fx::Value> MethodResolver::call_method(std::string_view name, Args args, const fx::Value& kwargs) {
  const at::Tensor t = args.empty() ? at::Tensor() : as_tensor(args[0]);
  if (!t.defined()) return std::nullopt;
  if (auto v = cast_method(name, args, kwargs)) return v;
  if (auto v = metadata_method(name, t, args, kwargs)) return v;
  if (auto v = special_method(name, args, kwargs)) return v;
  return call_overloaded(name, args, kwargs);
}

std::optional<fx::Value> MethodResolver::call_function(const fx::Callable& f, Args args, const fx::Value&) {
  const std::string_view name = f.qualified_name();
  constexpr std::string_view operators = "_operator.";
  const bool is_operator = name.starts_with(operators);
  if (!is_operator && name != "builtins.getattr" && name != "builtins.len") return std::nullopt;
  // Only the functions that operators record: a user's function may have a similar name.
  if (fx::builtin_function(name).get() != &f || args.empty()) return std::nullopt;
  const std::string_view base = is_operator ? name.substr(operators.size()) : name;
  if (base == "getitem")
    return args.size() == 2 && as_tensor(args[0]).defined() ? std::optional(get_item(args[0], args[1])) : std::nullopt;
  if (!holds_tensor(args[0]) && (args.size() < 2 || !holds_tensor(args[1]))) return std::nullopt;
  if (name == "builtins.getattr")
    return as_tensor(args[0]).defined() ? std::optional(get_attribute(args)) : std::nullopt;
  if (name == "builtins.len")
    return as_tensor(args[0]).defined() ? metadata_method("__len__", as_tensor(args[0]), args, {}) : std::nullopt;
  if (args.size() == 1) return unary(base, args[0]);
  if (args.size() == 2 && (as_tensor(args[0]).defined() || as_tensor(args[1]).defined()))
    return binary(base, args[0], args[1]);
  return std::nullopt;
}

MethodResolver& method_resolver() {
  static MethodResolver& resolver = *new MethodResolver;
  return resolver;
}

}  // namespace fxjit::inline v0::torch_
