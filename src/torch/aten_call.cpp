#include "torch/aten_call.h"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include <cstring>

#include "torch/convert.h"
#include "torch/frame_error.h"

namespace fxjit::inline v0::torch_ {
namespace {

using Arg = AtenCall::Arg;

bool is_sequence(const fx::Argument& a) { return a.is(fx::Argument::Kind::List) || a.is(fx::Argument::Kind::Tuple); }

bool wants_float(const c10::Type& type) {
  return type.kind() == c10::TypeKind::FloatType || type.kind() == c10::TypeKind::SymFloatType;
}

std::optional<Arg> make_arg(const fx::Argument& a, const c10::Type& declared, const Binder& binder);

std::optional<Arg> make_list(const fx::Argument& a, const c10::Type& type, const Binder& binder) {
  if (type.kind() != c10::TypeKind::ListType || !is_sequence(a)) return std::nullopt;
  Arg out;
  out.kind = Arg::List;
  c10::TypePtr element = type.containedTypes().at(0);
  if (element->kind() == c10::TypeKind::SymIntType) element = c10::IntType::get();
  out.constant = c10::impl::GenericList(element);
  for (const fx::Argument& item : a.items()) {
    auto made = make_arg(item, *element, binder);
    if (!made) return std::nullopt;
    out.items.push_back(*std::move(made));
  }
  return out;
}

bool has_symbol(const fx::Argument& a, const Binder& binder) {
  if (!binder.symbol_of) return false;
  if (!is_sequence(a)) return binder.symbol_of(a).has_value();
  for (const fx::Argument& item : a.items())
    if (has_symbol(item, binder)) return true;
  return false;
}

std::optional<Arg> make_arg(const fx::Argument& a, const c10::Type& declared, const Binder& binder) {
  const c10::Type& type = bare(declared);
  Arg out;
  if (binder.symbol_of) {
    if (auto symbol = binder.symbol_of(a)) {
      out.kind = Arg::Symbol;
      out.index = symbol->index;
      out.is_float = symbol->is_float;
      out.wants_float = wants_float(type);
      out.as_tensor = type.kind() == c10::TypeKind::TensorType;
      return out;
    }
  }
  if (const fx::Node* n = a.node_or_null()) {
    if (type.kind() != c10::TypeKind::TensorType) return std::nullopt;
    out.kind = Arg::Slot;
    out.index = binder.slot_of(n);
    return out;
  }
  if (a.contains_node() || has_symbol(a, binder)) return make_list(a, type, binder);
  auto constant = to_ivalue(a, declared);
  if (!constant) return std::nullopt;
  out.constant = *std::move(constant);
  return out;
}

c10::IValue symbol_value(const Arg& a, const fxjit_frame* frame) {
  int64_t bits = frame->symbols[a.index];
  c10::Scalar s(bits);
  if (a.is_float) {
    double d;
    std::memcpy(&d, &bits, sizeof d);
    s = d;
  }
  if (a.wants_float) s = s.toDouble();
  if (a.as_tensor) return wrapped_number(s);
  return s;
}

c10::IValue evaluate(const Arg& a, fxjit_frame* frame) {
  switch (a.kind) {
    case Arg::Constant:
      return a.constant;
    case Arg::Slot: {
      auto* impl = static_cast<c10::TensorImpl*>(frame->slots[a.index]);
      return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(impl));
    }
    case Arg::Symbol:
      return symbol_value(a, frame);
    case Arg::List: {
      c10::impl::GenericList list(a.constant.toList().elementType());
      list.reserve(a.items.size());
      for (const Arg& item : a.items) list.push_back(evaluate(item, frame));
      return list;
    }
  }
  return {};
}

// Puts the tensors of `v` into the slots, in order.
void store(fxjit_frame* frame, c10::IValue& v, const std::vector<int32_t>& slots, size_t* place) {
  if (v.isTensorList() || v.isOptionalTensorList()) {
    for (c10::IValue item : v.toListRef()) store(frame, item, slots, place);
    return;
  }
  if (!v.isTensor()) return;
  size_t i = (*place)++;
  if (i >= slots.size() || slots[i] < 0) return;
  fxjit_value& slot = frame->slots[slots[i]];
  auto* old = static_cast<c10::TensorImpl*>(slot);
  slot = std::move(v).toTensor().unsafeReleaseTensorImpl();
  if (old) c10::raw::intrusive_ptr::decref(old);
}

}  // namespace

Result<std::unique_ptr<AtenCall>> AtenCall::bind(const fx::Node& node, const Binder& binder,
                                                 std::vector<int32_t> results) {
  std::string name(node.callable().qualified_name());
  auto op = find_operator(name);
  if (!op) return Failure{"there is no operator " + name};
  const auto& schema = op->schema().arguments();
  std::vector<Arg> args;
  for (size_t i = 0; i < schema.size(); ++i) {
    const fx::Argument* given =
        i < node.args().size() ? &node.arg(i) : node.kwargs().find(fx::Argument(schema[i].name()));
    Arg arg;
    if (given) {
      auto made = make_arg(*given, *schema[i].real_type(), binder);
      if (!made) {
        // int[2] = 1 and the like
        auto constant = given->contains_node() ? std::nullopt : to_ivalue(*given, schema[i]);
        if (!constant) return Failure{name + ": argument '" + schema[i].name() + "' cannot be " + given->to_string()};
        arg.constant = *std::move(constant);
      } else {
        arg = *std::move(made);
      }
    } else if (schema[i].default_value()) {
      arg.constant = *schema[i].default_value();
    } else {
      return Failure{name + ": argument '" + schema[i].name() + "' is missing"};
    }
    args.push_back(std::move(arg));
  }
  return std::unique_ptr<AtenCall>(new AtenCall(*std::move(op), std::move(args), std::move(results)));
}

std::string AtenCall::name() const { return c10::toString(op_.operator_name()); }

fxjit_status AtenCall::run(fxjit_frame* frame) const noexcept {
  try {
    std::vector<c10::IValue> stack;
    stack.reserve(args_.size());
    for (const Arg& a : args_) stack.push_back(evaluate(a, frame));
    op_.callBoxed(stack);
    size_t place = 0;
    for (c10::IValue& v : stack) store(frame, v, results_, &place);
    return FXJIT_OK;
  } catch (...) {
    return catch_into(frame);
  }
}

}  // namespace fxjit::inline v0::torch_
