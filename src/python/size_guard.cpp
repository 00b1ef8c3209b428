#include "python/size_guard.h"

#include <array>

namespace fxjit::inline v0::python {
namespace {

constexpr size_t kSizeGuardDepth = 32;

bool divide(int64_t a, int64_t b, int64_t& quotient, int64_t& remainder) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  quotient = a / b;
  remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    --quotient;
    remainder += b;
  }
  return true;
}

bool combine(char operation, int64_t a, int64_t b, int64_t& out) {
  int64_t other = 0;
  switch (operation) {
    case '+':
      return !__builtin_add_overflow(a, b, &out);
    case '-':
      return !__builtin_sub_overflow(a, b, &out);
    case '*':
      return !__builtin_mul_overflow(a, b, &out);
    case '/':
      return divide(a, b, out, other);
    case '%':
      return divide(a, b, other, out);
    case '=':
      out = a == b;
      return true;
    case '!':
      out = a != b;
      return true;
    case '<':
      out = a < b;
      return true;
    case 'l':
      out = a <= b;
      return true;
    case '>':
      out = a > b;
      return true;
    case 'g':
      out = a >= b;
      return true;
    default:
      return false;
  }
}

bool read(const SizeStep& step, std::span<c10::TensorImpl* const> tensors, int64_t& out) {
  if (step.operation == 'c') {
    out = step.value;
    return true;
  }
  const c10::TensorImpl& tensor = *tensors[step.input];
  int64_t rank = tensor.dim();
  if (step.operation == 'd') {
    out = rank;
    return true;
  }
  int64_t d = step.value < 0 ? step.value + rank : step.value;
  if (d < 0 || d >= rank || tensor.has_symbolic_sizes_strides()) return false;
  out = tensor.size(d);
  return true;
}

bool is_read(char operation) { return operation == 'c' || operation == 's' || operation == 'd'; }

}  // namespace

bool is_size_guard(const SizeGuard& guard, size_t inputs) {
  size_t depth = 0;
  for (const SizeStep& step : guard) {
    if (is_read(step.operation)) {
      if (step.operation != 'c' && step.input >= inputs) return false;
      if (++depth > kSizeGuardDepth) return false;
    } else {
      if (depth < 2) return false;
      --depth;
    }
  }
  return depth == 1;
}

bool holds(const SizeGuard& guard, std::span<c10::TensorImpl* const> tensors) {
  std::array<int64_t, kSizeGuardDepth> stack;
  size_t depth = 0;
  for (const SizeStep& step : guard) {
    if (is_read(step.operation)) {
      if (!read(step, tensors, stack[depth++])) return false;
      continue;
    }
    --depth;
    int64_t value = 0;
    if (!combine(step.operation, stack[depth - 1], stack[depth], value)) return false;
    stack[depth - 1] = value;
  }
  return stack[0] != 0;
}

}  // namespace fxjit::inline v0::python
