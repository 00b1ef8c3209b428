#include "torch/bind_numbers.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/registry.h"
#include "torch/convert.h"

namespace fxjit::inline v0::torch_ {
namespace {

// From here on a double does not tell ints apart.
constexpr double kExactInts = 0x1p53;
constexpr double kLargestBFloat16 = 0x1.fep127;

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Ints and floats; of Scalars too. Empty for what is no number, and for bools.
std::optional<double> number_of(const c10::IValue& v) {
  if (v.isInt()) return static_cast<double>(v.toInt());
  if (v.isDouble()) return v.toDouble();
  return std::nullopt;
}

// Element types, layouts and memory formats are ints to the dispatcher.
bool is_enumeration(const c10::Type& type) {
  return type.kind() == c10::TypeKind::ScalarTypeType || type.kind() == c10::TypeKind::LayoutType ||
         type.kind() == c10::TypeKind::MemoryFormatType;
}

bool takes_scalar(const c10::Type& type) {
  return type.kind() == c10::TypeKind::NumberType || type.kind() == c10::TypeKind::TensorType;
}

// "aten::mul_.Tensor" is an in-place "aten::mul.Tensor".
std::string pure_name(std::string name) {
  const size_t end = std::min(name.find('.'), name.size());
  if (end > 0 && name[end - 1] == '_') name.erase(end - 1, 1);
  return name;
}

// Operators whose result has a type that follows from the kinds of numbers, not from their values. A power is not
// among them: exponents decide how eager computes it.
bool hands_on_values_only(const RecordedCall& call) {
  const auto row = ops::find_schema(pure_name(call.name()));
  if (!row) return false;
  if (row->kind == ops::OpClass::Elementwise) return row->op() != ops::OpId::pow;
  return row->kind == ops::OpClass::Special && row->special() != ops::SpecialRule::pow;
}

class Analysis {
 public:
  Analysis(const Recorder& recorder, const NumberTable& table) : recorder_(recorder), table_(table) {
    out_.baked.assign(table.numbers.size(), false);
    out_.bounded.assign(table.numbers.size(), false);
  }

  BoundNumbers run() {
    std::map<int32_t, std::vector<size_t>> calls;
    for (size_t i = 0; i < recorder_.calls().size(); ++i)
      if (table_.scopes.contains(recorder_.calls()[i].scope)) calls[recorder_.calls()[i].scope].push_back(i);
    for (const auto& [scope, use] : table_.scopes) visit(use, calls[scope]);
    std::erase_if(out_.arguments, [&](const auto& bound) { return out_.baked[bound.second]; });
    return std::move(out_);
  }

 private:
  void bake(int32_t n) {
    out_.baked[n] = true;
    const auto& derived = table_.numbers[n].derived;
    if (!derived) return;
    for (int32_t operand : {derived->a.number, derived->b.number})
      if (operand >= 0) bake(operand);
  }
  void bake_all(const ScopeNumbers& use) {
    for (int32_t n : use.numbers) bake(n);
  }

  bool is_ambiguous(const ScopeNumbers& use, int32_t n) const {
    const CallNumber& number = table_.numbers[n];
    const double value = number.value();
    const double size = std::fabs(value);
    const bool bounded = size <= kLargestBFloat16 || std::isinf(value);
    if (number.is_float ? !bounded : size >= kExactInts) return true;
    for (double literal : use.literals)
      if (same_number(literal, value)) return true;
    for (int32_t other : use.numbers)
      if (other != n && same_number(table_.numbers[other].value(), value)) return true;
    return false;
  }

  void visit(const ScopeNumbers& use, const std::vector<size_t>& calls) {
    if (!use.binds) return bake_all(use);
    shown_.clear();
    for (size_t call : calls)
      for (size_t i = 0; i < recorder_.calls()[call].args.size(); ++i)
        if (!explain(use, call, i)) return bake_all(use);
    for (int32_t n : use.numbers) {
      const auto places = shown_.count(n);
      if (places == 1 && !is_ambiguous(use, n)) {
        out_.arguments.emplace(shown_.find(n)->second, n);
        if (table_.numbers[n].is_float) out_.bounded[n] = true;
      } else {
        bake(n);
      }
    }
  }

  // Whether it is known where each number of the argument comes from; numbers of the scope are noted.
  bool explain(const ScopeNumbers& use, size_t call, size_t i) {
    const RecordedCall& c = recorder_.calls()[call];
    const RecordedArg& arg = c.args[i];
    const c10::Argument& declared = c.op.schema().arguments()[i];
    const c10::Type& type = bare(*declared.real_type());
    if (arg.kind != RecordedArg::Constant || is_enumeration(type)) return true;
    if (arg.constant.isComplexDouble()) return false;
    if (arg.constant.isList()) {
      for (const c10::IValue& item : arg.constant.toListRef())
        if (const auto v = number_of(item); v && !is_literal(use, *v)) return false;
      return true;
    }
    const auto value = number_of(arg.constant);
    if (!value) return true;
    const auto usual = declared.default_value() ? number_of(*declared.default_value()) : std::nullopt;
    const bool is_default = usual && same_number(*usual, *value);
    for (int32_t n : use.numbers) {
      const CallNumber& number = table_.numbers[n];
      if (!same_number(number.value(), *value)) continue;
      if (is_default || !takes_scalar(type) || !hands_on_values_only(c)) return false;
      if (arg.constant.isDouble() != number.is_float) return false;
      shown_.emplace(n, std::pair(call, i));
      return true;
    }
    return is_default || is_literal(use, *value);
  }

  static bool is_literal(const ScopeNumbers& use, double v) {
    return std::any_of(use.literals.begin(), use.literals.end(), [v](double l) { return same_number(l, v); });
  }

  const Recorder& recorder_;
  const NumberTable& table_;
  BoundNumbers out_;
  std::multimap<int32_t, std::pair<size_t, size_t>> shown_;  // number -> where
};

}  // namespace

double CallNumber::value() const {
  return is_float ? std::bit_cast<double>(bits) : static_cast<double>(std::bit_cast<int64_t>(bits));
}

BoundNumbers bind_numbers(const Recorder& recorder, const NumberTable& table) {
  return Analysis(recorder, table).run();
}

}  // namespace fxjit::inline v0::torch_
